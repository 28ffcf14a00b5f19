package gosdk_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestAsksForATask: a client of 2025-11-25 asks for a task exactly where server
// and tool take one.
func TestAsksForATask(t *testing.T) {
	rules.Covers(t, "C-08", "C-09", "C-11", "C-12")
	const able, list = `{"tasks":{"requests":{"tools":{"call":{}}}}}`, `{"tasks":{"list":{},"cancel":{}}}`
	for _, tc := range []struct {
		capabilities, support string
		plain, want           bool
	}{
		{able, `"required"`, false, true},
		{able, `"required"`, true, true},
		{able, `"optional"`, false, true},
		{able, `"optional"`, true, false},
		{able, `"forbidden"`, false, false},
		{able, `null`, false, false},
		{able, ``, false, false},
		{list, `"required"`, false, false},
		{`{}`, `"required"`, false, false},
		{`{"tasks":{"requests":{}}}`, `"optional"`, false, false},
		{`{"tasks":{"requests":{"tools":{}}}}`, `"optional"`, false, false},
		{`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, `"optional"`, false, false},
	} {
		t.Run(fmt.Sprintf("%s %s plain %v", tc.capabilities, tc.support, tc.plain), func(t *testing.T) {
			eachWay(t, func(t *testing.T, connect func(*scripted, gosdk.ClientOptions) mcptask.Conn) {
				s := &scripted{t: t, revision: legacyRevision}
				execution := fmt.Sprintf(`,"execution":{"taskSupport":%s}`, tc.support)
				if tc.support == "" {
					execution = ""
				}
				s.answer = func(c call) reply {
					switch c.method {
					case "initialize":
						return result(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"s","version":"1"}}`, s.revision, tc.capabilities)
					case "tools/list":
						return result(`{"tools":[{"name":"other","inputSchema":{"type":"object"}},{"name":"tool","inputSchema":{"type":"object"}%s}]}`, execution)
					case "tools/call":
						if c.member("task") != "" {
							return s.created("t")
						}
						return result("%s", output(1))
					case "tasks/get":
						return s.state("t", "completed")
					case "tasks/result":
						return result("%s", output(1))
					}
					return reply{}
				}
				var options []mcptask.CallOption
				if tc.plain {
					options = append(options, mcptask.Plain())
				}
				call := start(t, connect(s, gosdk.ClientOptions{}), options...)
				if out, err := call.Wait(t.Context()); err != nil || out.N != 1 {
					t.Errorf("%+v, %v", out, err)
				}
				if asked := s.of("tools/call")[0].member("task") != ""; asked != tc.want {
					t.Errorf("asked for a task: %v", asked)
				}
			})
		})
	}
}

// TestDeclaresTheExtension: with each request, but where no task is wanted.
func TestDeclaresTheExtension(t *testing.T) {
	rules.Covers(t, "E-02", "E-04")
	eachWay(t, func(t *testing.T, connect func(*scripted, gosdk.ClientOptions) mcptask.Conn) {
		s := polled(t, modernRevision, func(s *scripted, _ int) reply { return s.done() })
		answer := s.answer
		s.answer = func(c call) reply {
			if c.method == "tools/call" && c.n%2 == 0 { // it decides alone
				return result("%s", output(1))
			}
			return answer(c)
		}
		conn := connect(s, gosdk.ClientOptions{})
		for range 4 {
			if out, err := start(t, conn).Wait(t.Context()); err != nil || out.N != 1 {
				t.Errorf("%+v, %v", out, err)
			}
		}
		s.mu.Lock()
		for _, c := range s.calls {
			declared := c.member("_meta", "io.modelcontextprotocol/clientCapabilities", "extensions", "io.modelcontextprotocol/tasks")
			if c.id != nil && (declared != "{}" || c.member("task") != "") {
				t.Errorf("%s declares %s", c.method, declared)
			}
		}
		s.mu.Unlock()
		start(t, conn, mcptask.Plain())
		calls := s.of("tools/call")
		if plain := calls[len(calls)-1]; plain.member("_meta", "io.modelcontextprotocol/clientCapabilities") != "{}" {
			t.Errorf("%s", plain.params)
		}
	})
}

// TestPagesInOrder: a cursor goes back as it came, whatever it is.
func TestPagesInOrder(t *testing.T) {
	rules.Covers(t, "C-71", "B-66")
	cursors := []string{`"eyJhIjoxfQ=="`, `" "`, `"\u0000ü\n"`, `"null"`, `"0"`}
	everyRevision(t, func(t *testing.T, revision string) {
		s := &scripted{t: t, revision: revision}
		s.answer = func(c call) reply {
			if c.method != "tools/list" {
				return reply{}
			}
			next := ""
			if c.n <= len(cursors) {
				next = `,"nextCursor":` + cursors[c.n-1]
			}
			return result(`{%s,"tools":[{"name":"tool%d","inputSchema":{"type":"object"}}]%s}`, complete, c.n, next)
		}
		tools, err := s.connect(gosdk.ClientOptions{}).ListTools(t.Context())
		if err != nil || len(tools) != len(cursors)+1 {
			t.Errorf("%v, %v", tools, err)
		}
		for i, c := range s.of("tools/list") {
			want := ""
			if i > 0 {
				want = cursors[i-1]
			}
			if got := c.member("cursor"); got != want && !sameJSON(got, want) {
				t.Errorf("page %d was asked for by %s, not by %s", i+1, got, want)
			}
		}
	})
}

// TestUnknownRevision checks that Connect refuses a revision that it does not know, and
// names those that it does.
func TestUnknownRevision(t *testing.T) {
	t.Parallel()
	_, err := gosdk.Connect(t.Context(), "http://127.0.0.1:1", gosdk.ClientOptions{Revision: "2027-13-01"})
	if err == nil || !strings.Contains(err.Error(), `"2027-13-01" is not supported: leave it empty or use `) || !strings.Contains(err.Error(), mcptask.Revision20260728) {
		t.Errorf("%v", err)
	}
}

// TestClientLogs: what becomes of each task is logged, with its ID.
func TestClientLogs(t *testing.T) {
	rules.Covers(t, "C-105", "C-106", "B-100", "B-101")
	everyRevision(t, func(t *testing.T, revision string) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, nil)) // a handler locks its writer
		s := polled(t, revision, func(s *scripted, n int) reply {
			switch {
			case n == 2:
				return s.done()
			case n > 3:
				return s.state("t", "cancelled")
			}
			return s.state("t", "working")
		})
		conn := s.connect(gosdk.ClientOptions{Logger: logger})
		if _, err := start(t, conn).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		call := start(t, conn)
		if err := call.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := call.Wait(t.Context()); err == nil {
			t.Error("it was cancelled")
		}
		synctest.Wait()
		for text, n := range map[string]int{
			`msg="task created" task=t tool=tool`: 2, `msg="task settled" task=t status=completed`: 1,
			`msg="task cancelled" task=t`: 1, `msg="task settled" task=t status=cancelled`: 1,
		} {
			if got := strings.Count(out.String(), text); got != n {
				t.Errorf("%q is there %d times:\n%s", text, got, out.String())
			}
		}
		time.Sleep(time.Second)
	})
}
