package gosdk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// asking is a server and a tool, and says if the client asks for a task there.
type asking struct {
	capabilities string
	tool         string // its members beside the name; "" if the server does not list it
	plain, want  bool
}

// checkAsksForATask calls each tool and checks if the client asks for a task.
func checkAsksForATask(t *testing.T, revision string, cases []asking) {
	t.Helper()
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%s %s plain %v", tc.capabilities, tc.tool, tc.plain), overEachWay(func(t *testing.T, connect connector) {
			s := &scripted{t: t, revision: revision}
			s.on("initialize", func(call) reply {
				return result(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"s","version":"1"}}`, s.protocol(), tc.capabilities)
			})
			s.on("tools/list", func(call) reply {
				const other = `{"name":"other","inputSchema":{"type":"object"}}`
				if tc.tool == "" {
					return result(`{"tools":[%s]}`, other)
				}
				return result(`{"tools":[%s,{"name":"tool","inputSchema":{"type":"object"},%s}]}`, other, tc.tool)
			})
			s.on("tools/call", func(c call) (r reply) {
				if c.member("task") == "" {
					r = result("%s", output(1))
				}
				return r
			})
			var options []mcptask.CallOption
			if tc.plain {
				options = append(options, mcptask.Plain())
			}
			wantNumber(t, start(t, connect(s, gosdk.ClientOptions{}), options...), 1)
			if calls := s.of("tools/call"); len(calls) != 1 || (calls[0].member("task") != "") != tc.want {
				t.Errorf("called with %v", calls)
			}
		}))
	}
}

const (
	takesTasks = `{"tasks":{"requests":{"tools":{"call":{}}}}}`
	listsTasks = `{"tasks":{"list":{},"cancel":{}}}`
)

// TestAsksForATask: a client of 2025-11-25 asks for a task exactly if server and tool accept one. It never makes a
// plain call of a tool that requires a task.
func TestAsksForATask(t *testing.T) {
	rules.Covers(t, "C-03", "C-04", "C-08", "C-09", "C-11", "C-12")
	const required, optional = `"execution":{"taskSupport":"required"}`, `"execution":{"taskSupport":"optional"}`
	checkAsksForATask(t, wiretest.LegacyRevision, []asking{
		{takesTasks, required, false, true},
		{takesTasks, required, true, true},
		{takesTasks, optional, false, true},
		{takesTasks, optional, true, false},
		{takesTasks, `"execution":{"taskSupport":"forbidden"}`, false, false},
		{takesTasks, `"execution":{"taskSupport":null}`, false, false},
		{takesTasks, `"execution":{}`, false, false},
		{takesTasks, `"title":"t"`, false, false},
		{takesTasks, "", false, false},
		{`{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`, optional, false, true},
		{listsTasks, required, false, false},
		{listsTasks, required, true, false},
		{`{}`, required, false, false},
		{`{"tasks":{}}`, optional, false, false},
		{`{"tasks":{"requests":{}}}`, optional, false, false},
		{`{"tasks":{"requests":{"tools":{}}}}`, optional, false, false},
		{`{"tasks":{"requests":{"sampling":{"createMessage":{}}}}}`, optional, false, false},
		{`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, optional, false, false},
		{`{"experimental":{"tasks":{"requests":{"tools":{"call":{}}}}}}`, optional, false, false},
	})
}

// TestCandidateAsksForATask: a client of the release candidate does the same in the candidate's words.
func TestCandidateAsksForATask(t *testing.T) {
	rules.Covers(t, "B-02", "B-03", "B-04", "B-08", "B-09", "B-11", "B-12", "B-15")
	const always, optional = `"annotations":{"taskHint":"always"}`, `"annotations":{"taskHint":"optional"}`
	checkAsksForATask(t, wiretest.CandidateRevision, []asking{
		{takesTasks, always, false, true},
		{takesTasks, always, true, true},
		{takesTasks, optional, false, true},
		{takesTasks, optional, true, false},
		{takesTasks, `"annotations":{"taskHint":"never"}`, false, false},
		{takesTasks, `"annotations":{}`, false, false},
		{takesTasks, `"annotations":{"taskHint":null}`, false, false},
		{takesTasks, `"annotations":{"taskHint":true}`, false, false}, // of an earlier draft
		{takesTasks, `"annotations":{"taskHint":"required"}`, false, false},
		{takesTasks, `"execution":{"taskSupport":"required"}`, false, false}, // of the release
		{takesTasks, `"title":"t"`, false, false},
		{`{"tasks":{"requests":{"tools":{"call":true}}}}`, always, false, true},
		{`{"tasks":{"requests":{"tools":{"call":false}}}}`, always, false, false},
		{`{"tasks":{"requests":{"tools":{"call":null}}}}`, optional, false, false},
		{`{"tasks":{"requests":{"tools":{"call":1}}}}`, optional, false, false},
		{listsTasks, always, false, false},
		{`{}`, always, false, false},
		{`{"tasks":{"requests":{"tools":{}}}}`, optional, false, false},
	})
}

// TestDeclaresTheExtension: the client declares the extension with each request except a plain call. The server may
// answer with a task or not.
func TestDeclaresTheExtension(t *testing.T) {
	rules.Covers(t, "E-02", "E-04", "E-06")
	eachWay(t, func(t *testing.T, connect connector) {
		s := newScript(t, wiretest.ModernRevision, "tools/call", func(_ *scripted, c call) (r reply) {
			if c.n%2 == 0 { // the server decides alone
				r = result(`{%s,"content":[],"structuredContent":{"n":1}}`, complete)
			}
			return r
		})
		conn := connect(s, gosdk.ClientOptions{})
		for range 4 {
			wantNumber(t, start(t, conn), 1)
		}
		s.mu.Lock()
		for _, c := range s.calls {
			declared := c.member("_meta", "io.modelcontextprotocol/clientCapabilities", "extensions", "io.modelcontextprotocol/tasks")
			if c.id != nil && (declared != "{}" || c.member("task") != "") {
				t.Errorf("%s declares %s", c.method, declared)
			}
		}
		s.mu.Unlock()
		if calls, polls := len(s.of("tools/call")), len(s.of("tasks/get")); calls != 4 || polls != 2 {
			t.Errorf("%d calls, %d polls", calls, polls)
		}
		start(t, conn, mcptask.Plain())
		calls := s.of("tools/call")
		if plain := calls[len(calls)-1]; plain.member("_meta", "io.modelcontextprotocol/clientCapabilities") != "{}" {
			t.Errorf("%s", plain.params)
		}
	})
}

// TestPagesInOrder: the client sends a cursor back unchanged, whatever it contains.
func TestPagesInOrder(t *testing.T) {
	rules.Covers(t, "C-71", "B-66", "A-51")
	cursors := []string{"b", "a", "2", " ", "null", "eyJhIjoxfQ==", "=?base64?eA==?=", "\x00ü\u2028\n", `{"page":1.50,"then":null}`, "a%2Fb+c/d==", strings.Repeat("x", 10_000), "b"}
	for _, revision := range append([]string{mcptask.RevisionSEP1686}, wiretest.AllRevisions...) {
		t.Run(revision, overEachWay(func(t *testing.T, connect connector) {
			s := newScript(t, revision, "tools/list", func(_ *scripted, c call) reply {
				next := ""
				if c.n <= len(cursors) {
					cursor, _ := json.Marshal(cursors[c.n-1])
					next = `,"nextCursor":` + string(cursor)
				}
				return result(`{%s,"tools":[{"name":"tool%d","inputSchema":{"type":"object"}}]%s}`, complete, c.n, next)
			})
			tools, err := connect(s, gosdk.ClientOptions{}).ListTools(t.Context())
			if err != nil || len(tools) != len(cursors)+1 || revision == mcptask.RevisionSEP1686 && tools[0].TaskSupport != "" {
				t.Errorf("%v, %v", tools, err)
			}
			for i, c := range s.of("tools/list") {
				if i == 0 {
					if c.member("cursor") != "" {
						t.Errorf("the first page was asked for by %s", c.params)
					}
					continue
				}
				var got string
				if err := json.Unmarshal([]byte(c.member("cursor")), &got); err != nil || got != cursors[i-1] {
					t.Errorf("%.60q came back as %.60s, %v", cursors[i-1], c.member("cursor"), err)
				}
			}
		}))
	}
}

// TestUnknownRevision checks that Connect refuses a revision that it does not know, and
// names those that it does.
func TestUnknownRevision(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2027-13-01", "sep-1687"} {
		_, err := gosdk.Connect(t.Context(), "http://127.0.0.1:1", gosdk.ClientOptions{Revision: revision})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q is not supported: leave it empty or use 2026-07-28, 2025-11-25,", revision)) {
			t.Errorf("%v", err)
		}
	}
}

// TestClientLogs: the client logs each change of a task, with the task's ID.
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
		cancel(t, call)
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
