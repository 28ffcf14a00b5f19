package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/target"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestNameProgram checks the beginning of printed commands.
func TestNameProgram(t *testing.T) {
	hash := strings.Repeat("0f", 32)
	for path, want := range map[string]string{
		"/usr/local/bin/mcptask": "mcptask", "": "mcptask",
		"/tmp/go-build1/b001/mcptask.test":                    "mcptask",
		"/home/ann/.cache/go-build/0f/" + hash + "-d/mcptask": "go tool mcptask",
		"/tmp/go-build1/b001/exe/mcptask":                     "go tool mcptask",
	} {
		if got := nameProgram(path); got != want {
			t.Errorf("%s for %s, want %s", got, path, want)
		}
	}
}

// TestRefusals checks the exit codes and words for answers that are neither a result nor a refusal in the protocol's
// terms.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		exit       int
		words      string
		answer     func(w http.ResponseWriter, id json.RawMessage)
	}{
		{"too many", "too_many_requests", exitTooMany, "too many requests: try again in 7s", func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		{"too many, in words", "too_many_requests", exitTooMany, "too many requests: try again later", func(w http.ResponseWriter, _ json.RawMessage) {
			http.Error(w, "slow down", http.StatusTooManyRequests)
		}},
		{"a page", "malformed", exitMalformed, `the answer has the HTTP status 200 and the content type "application/json", and is "<html>"`, func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "<html>")
		}},
		{"a result of another kind", "malformed", exitMalformed, "malformed", func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"x"}`, id)
		}},
		{"no token", "denied", exitDenied, "no token was sent: --token-env NAME sends one, and --header other credentials; the server says: HTTP status 401 (Unauthorized)", func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusUnauthorized) }},
		{"an error of the server", "unreachable", exitUnreachable, "", func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusBadGateway) }},
	} {
		for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
			t.Run(c.name+"/"+revision, func(t *testing.T) {
				failed := listTools(t, target.Server{Revision: revision}, c.answer)
				if failed.code != c.exit || failed.kind != c.kind || !strings.Contains(failed.Error(), c.words) {
					t.Errorf("%v (%s, %d), want %q (%s, %d)", failed, failed.kind, failed.code, c.words, c.kind, c.exit)
				}
			})
		}
	}
	limited := fmt.Errorf("list: %w", &mcptask.Error{Code: mcptask.CodeInternalError, Message: "too many lists", Data: []byte(`{"limit":"lists","max":20}`)})
	if f := describeFailure(limited, ""); f.code != exitTooMany || f.kind != "too_many_requests" {
		t.Errorf("%v (%s, %d)", f, f.kind, f.code)
	}
	// A message as long as this one would take minutes if each step in it were taken out.
	long := fmt.Errorf("list: %w", &mcptask.Error{Code: mcptask.CodeInternalError, Message: strings.Repeat("mcptask: ", 100_000), Data: []byte(`{"limit":"lists"}`)})
	if f := describeFailure(long, ""); f.code != exitTooMany {
		t.Errorf("%.100s (%s, %d)", f, f.kind, f.code)
	}
	changed := fmt.Errorf("the task: %w", &mcptask.Error{Code: mcptask.CodeInternalError, Message: "started under another declaration: missing property", Data: []byte(`{"reason":"declaration_changed"}`)})
	if f := describeFailure(changed, "t"); f.code != exitFailed || f.kind != "declaration_changed" || !strings.Contains(f.Error(), "call the tool again") {
		t.Errorf("%v (%s, %d)", f, f.kind, f.code)
	}
	late := fmt.Errorf("the task: %w", &mcptask.Error{Code: mcptask.CodeInternalError, Message: "build did not finish within its deadline of 1m", Data: []byte(`{"reason":"deadline"}`)})
	if f := describeFailure(late, "t"); f.code != exitFailed || f.kind != "deadline" || f.task != "t" || strings.Contains(f.Error(), "the task:") {
		t.Errorf("%v (%s, %d)", f, f.kind, f.code)
	}
}

// listTools runs mcptask tools on a server that gives the same answer to each request, and returns the failure.
func listTools(t *testing.T, to target.Server, answer func(w http.ResponseWriter, id json.RawMessage)) *failure {
	t.Helper()
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		answer(w, m.ID)
	}))
	defer answers.Close()
	to.URL = answers.URL
	config := &config{server: server{to}, stdin: os.Stdin, stdout: io.Discard, stderr: os.Stderr, interrupts: make(chan os.Signal, 2), noInput: true, quiet: true}
	failed := new(failure)
	if err := config.run(t.Context(), describeTools(nil)); !errors.As(err, &failed) {
		t.Fatalf("got %v, want a failure", err)
	}
	return failed
}

// TestDenials checks that the reason of a server that refuses a request is shown, in both revisions.
func TestDenials(t *testing.T) {
	for _, c := range []struct {
		name, sent string // sent is a header, or ""
		status     int
		challenge  string
		body       string // with %s for the ID of the request
		want       string
	}{
		{"no token", "", 401, `Bearer`, "no bearer token", "no token was sent: --token-env NAME sends one, and --header other credentials; the server says: no bearer token"},
		{"expired", "Authorization: Bearer x", 401, `Bearer error="invalid_token"`, "invalid token: token expired\n", "the server refuses the token: invalid token: token expired"},
		{"audience", "Authorization: Bearer x", 401, `Bearer realm="scope=a", error="invalid_token", error_description="it is for \"b\""`, "", `the server refuses the token: it is for "b"`},
		{"only a code", "Authorization: Bearer x", 401, `Bearer error=invalid_token`, "", "the server refuses the token: invalid_token"},
		{"JSON", "Authorization: Bearer x", 401, ``, `{"error": "invalid_token", "error_description": "Token has expired"}`, "the server refuses the token: Token has expired"},
		{"JSON of others", "Authorization: Bearer x", 401, ``, `{"message": "go away"}`, "the server refuses the token: go away"},
		{"a page", "Authorization: Bearer x", 401, ``, "<html>", "the server refuses the token: HTTP status 401 (Unauthorized)"},
		{"hostile", "Authorization: Bearer x", 401, ``, "\x1b[2Ja\nb" + strings.Repeat("x", 1000), "the server refuses the token: [2Ja b" + strings.Repeat("x", 294) + "…"},
		{"scopes", "Authorization: Bearer x", 403, `Bearer error="insufficient_scope", scope="deploy admin"`, `{"jsonrpc": "2.0", "id": %s, "error": {"code": -32600, "message": "no"}}`, "the server refuses the token, which needs the scopes deploy admin: send one that has them"},
		{"scopes without names", "Authorization: Bearer x", 403, `Bearer error="insufficient_scope"`, "insufficient scope", "the server refuses the request: insufficient scope"},
		{"another code", "Authorization: Bearer x", 403, ``, `{"jsonrpc": "2.0", "id": %s, "error": {"code": -32600, "message": "not you"}}`, "the server refuses the request: not you"},
		{"another header", "X-Key: x", 401, ``, "no", "the server refuses the request: no; send credentials with --token-env or --header"},
	} {
		for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
			t.Run(c.name+"/"+revision, func(t *testing.T) {
				header := http.Header{}
				if name, value, ok := strings.Cut(c.sent, ": "); ok {
					header.Set(name, value)
				}
				failed := listTools(t, target.Server{Revision: revision, Header: header}, func(w http.ResponseWriter, id json.RawMessage) {
					if c.challenge != "" {
						w.Header().Set("WWW-Authenticate", c.challenge)
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, strings.Replace(c.body, "%s", string(id), 1))
				})
				if failed.code != exitDenied || failed.kind != "denied" || failed.Error() != c.want {
					t.Errorf("got  %v (%s, %d)\nwant %s", failed, failed.kind, failed.code, c.want)
				}
			})
		}
	}
}

// TestWrongAnswer checks that a wrong answer of the command line is called that, and not a missing one.
func TestWrongAnswer(t *testing.T) {
	s := &session{config: &config{server: server{target.Server{URL: "http://localhost/mcp"}}}}
	question := mcptask.Question{TaskID: "t", Key: "ship", Message: "Ship it?", Method: "elicitation/create"}
	wrong := s.needAnswer("t", openQuestion{question, fmt.Errorf("%w: approve: got string, want boolean", mcptask.ErrInvalidAnswer)})
	if first, _, _ := strings.Cut(wrong.Error(), "\n"); wrong.code != exitUsage || wrong.kind != "wrong_answer" || !strings.Contains(first, "approve: got string, want boolean") {
		t.Errorf("%v (%s, %d)", wrong, wrong.kind, wrong.code)
	}
	if wrong.question == nil || !strings.Contains(wrong.Error(), "Ship it?") || !strings.Contains(wrong.Error(), "mcptask answer http://localhost/mcp t ship") {
		t.Errorf("%v", wrong)
	}
	if missing := s.needAnswer("t", openQuestion{question, nil}); missing.code != exitAsks || missing.kind != "needs_answer" {
		t.Errorf("%v (%s, %d)", missing, missing.kind, missing.code)
	}
}
