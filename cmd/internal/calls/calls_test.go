package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestNameProgram checks what the printed commands begin with.
func TestNameProgram(t *testing.T) {
	hash := strings.Repeat("0f", 32)
	for path, want := range map[string]string{
		"/usr/local/bin/mcptaskgen": "mcptaskgen", "": "mcptaskgen",
		"/tmp/go-build1/b001/mcptaskgen.test":                    "mcptaskgen",
		"/home/ann/.cache/go-build/0f/" + hash + "-d/mcptaskgen": "go tool mcptaskgen",
		"/tmp/go-build1/b001/exe/mcptaskgen":                     "go tool mcptaskgen",
	} {
		if got := nameProgram(path); got != want {
			t.Errorf("%s for %s, want %s", got, path, want)
		}
	}
}

// TestReadInputUntilCtrlC presses Ctrl-C while standard input stays open.
func TestReadInputUntilCtrlC(t *testing.T) {
	stdin, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = stdout.Close(), stdin.Close() }()
	interrupts := make(chan os.Signal, 1)
	interrupts <- os.Interrupt
	_, err = Config{Stdin: stdin, Interrupts: interrupts}.ReadInput(t.Context(), 10)
	if failure := new(Failure); !errors.As(err, &failure) || failure.Code != ExitInterrupted {
		t.Errorf("%#v", err)
	}
}

// cancelConn counts the cancellations of its tasks.
type cancelConn struct {
	mcptask.Conn
	cancelled int
}

func (c *cancelConn) CancelTask(context.Context, string) error {
	c.cancelled++
	return nil
}

func (*cancelConn) Revision() string { return mcptask.Revision20260728 }

// TestOneCtrlC checks that one press of Ctrl-C leaves the task running, though the go command passes on a copy of the signal,
// and that another press cancels it.
func TestOneCtrlC(t *testing.T) {
	for _, c := range []struct {
		name  string
		at    []time.Duration // further signals, after the first
		exit  int
		after time.Duration
	}{
		{"alone", nil, ExitInterrupted, onePress + secondInterrupt},
		{"with its copy", []time.Duration{0}, ExitInterrupted, onePress + secondInterrupt},
		{"with a late copy", []time.Duration{onePress / 2, onePress - 1}, ExitInterrupted, onePress + secondInterrupt},
		{"twice", []time.Duration{onePress + 1}, ExitCancelled, onePress + 1},
		{"twice, with copies", []time.Duration{0, time.Second, time.Second}, ExitCancelled, time.Second},
		{"too late", []time.Duration{onePress + secondInterrupt + 1}, ExitInterrupted, onePress + secondInterrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = null.Close() }()
				config := Config{Stdin: null, Stdout: null, Stderr: null, Interrupts: make(chan os.Signal, 2), NoInput: true, Quiet: true}
				s, conn := newSession(config), &cancelConn{}
				s.conn = conn
				defer s.terminal.Close()
				call, err := s.resume("t")
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for _, at := range c.at {
					time.AfterFunc(at, func() {
						select {
						case config.Interrupts <- os.Interrupt:
						default:
						}
					})
				}
				failure := new(Failure)
				if err := s.leave(t.Context(), interruption{os.Interrupt}, "t", call); !errors.As(err, &failure) || failure.Code != c.exit {
					t.Errorf("%v, want exit code %d", err, c.exit)
				}
				if wants := c.exit == ExitCancelled; conn.cancelled > 1 || (conn.cancelled == 1) != wants {
					t.Errorf("the task was cancelled %d times", conn.cancelled)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("it ended after %v, want %v", took, c.after)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
			})
		})
	}
}

// TestRefusals checks the exit codes and words for what a server answers that is neither a result nor a refusal in the
// protocol's terms.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		exit       int
		words      string
		answer     func(w http.ResponseWriter, id json.RawMessage)
	}{
		{"too many", "too_many_requests", ExitTooMany, "too many requests", func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		{"too many, in words", "too_many_requests", ExitTooMany, "too many requests", func(w http.ResponseWriter, _ json.RawMessage) {
			http.Error(w, "slow down", http.StatusTooManyRequests)
		}},
		{"a page", "malformed", ExitMalformed, "malformed", func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "<html>")
		}},
		{"a result of another kind", "malformed", ExitMalformed, "malformed", func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"x"}`, id)
		}},
		{"no token", "denied", ExitDenied, "--token-env", func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusUnauthorized) }},
		{"an error of the server", "unreachable", ExitUnreachable, "", func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusBadGateway) }},
	} {
		for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
			t.Run(c.name+"/"+revision, func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					var m struct {
						ID json.RawMessage `json:"id"`
					}
					if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
						t.Error(err)
					}
					c.answer(w, m.ID)
				}))
				defer server.Close()
				config := Config{Server: Server{URL: server.URL, Revision: revision}, Stdin: os.Stdin, Stdout: io.Discard, Stderr: os.Stderr,
					Interrupts: make(chan os.Signal, 2), Format: FormatText, NoInput: true, Quiet: true}
				failure := new(Failure)
				if err := Describe(t.Context(), config, ""); !errors.As(err, &failure) || failure.Code != c.exit || failure.Kind != c.kind ||
					!strings.Contains(failure.Error(), c.words) {
					t.Errorf("%v (%s, %d), want %q (%s, %d)", err, failure.Kind, failure.Code, c.words, c.kind, c.exit)
				}
			})
		}
	}
	limited := fmt.Errorf("list: %w", &mcptask.Error{Code: mcptask.CodeInternalError, Message: "too many lists", Data: []byte(`{"limit":"lists","max":20}`)})
	if f := describeFailure(limited, ""); f.Code != ExitTooMany || f.Kind != "too_many_requests" {
		t.Errorf("%v (%s, %d)", f, f.Kind, f.Code)
	}
}

// TestWrongAnswer checks that a wrong answer of the command line is called that, and not a missing one.
func TestWrongAnswer(t *testing.T) {
	s := &session{Config: Config{Server: Server{URL: "http://localhost/mcp"}}}
	question := mcptask.Question{TaskID: "t", Key: "ship", Message: "Ship it?", Method: "elicitation/create"}
	wrong := s.needAnswer("t", openQuestion{question, fmt.Errorf("%w: approve: got string, want boolean", mcptask.ErrInvalidAnswer)})
	if first, _, _ := strings.Cut(wrong.Error(), "\n"); wrong.Code != ExitUsage || wrong.Kind != "wrong_answer" || !strings.Contains(first, "approve: got string, want boolean") {
		t.Errorf("%v (%s, %d)", wrong, wrong.Kind, wrong.Code)
	}
	if wrong.Question == nil || !strings.Contains(wrong.Error(), "Ship it?") || !strings.Contains(wrong.Error(), "mcptaskgen answer http://localhost/mcp t ship") {
		t.Errorf("%v", wrong)
	}
	if missing := s.needAnswer("t", openQuestion{question, nil}); missing.Code != ExitAsks || missing.Kind != "needs_answer" {
		t.Errorf("%v (%s, %d)", missing, missing.Kind, missing.Code)
	}
}
