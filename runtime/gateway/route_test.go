package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// recorded is an exchange that notes what happens to its message.
type recorded struct {
	m         *message
	isModern  bool
	session   *session
	badHeader *mcptask.Error
	did       []string
}

func (x *recorded) note(format string, args ...any) {
	x.did = append(x.did, fmt.Sprintf(format, args...))
}

func (x *recorded) context() context.Context { return context.Background() }
func (x *recorded) message() *message        { return x.m }
func (x *recorded) modern() bool             { return x.isModern }
func (x *recorded) caller() taskserver.Caller {
	return taskserver.Caller{Principal: "p", Method: x.m.Method}
}

func (x *recorded) enter() (*session, taskserver.Caller, bool) {
	if x.session == nil && x.m.Method != "initialize" {
		x.note("no session")
		return nil, taskserver.Caller{}, false
	}
	caller := x.caller()
	if x.session != nil {
		caller.Revision = x.session.revision
	}
	return x.session, caller, true
}

func (x *recorded) initialize(*Flow)                                 { x.note("initialize") }
func (x *recorded) checkVersion(string) *mcptask.Error               { return nil }
func (x *recorded) version() string                                  { return "" }
func (x *recorded) discover(context.Context, []byte) json.RawMessage { return nil }
func (x *recorded) checkNames(bool) *mcptask.Error                   { return x.badHeader }
func (x *recorded) isPipe() bool                                     { return true }
func (x *recorded) trace() string                                    { return x.m.readTrace() }
func (x *recorded) accept()                                          { x.note("accept") }
func (x *recorded) refuse(_ refusalKind, e *mcptask.Error)           { x.note("refuse %d", e.Code) }
func (x *recorded) send([]byte)                                      { x.note("send") }
func (x *recorded) flush()                                           {}
func (x *recorded) cancel(json.RawMessage) bool                      { x.note("cancel"); return false }
func (x *recorded) forwardOpen(done func())                          { x.note("forward open"); done() }

func (x *recorded) answer(work work) {
	_, err := work.run(context.Background())
	x.note("answer waits=%v failed=%v", work.waits, err != nil)
}

func (x *recorded) carryQuestions(protocol.Teller, string) (stop func()) { return func() {} }
func (x *recorded) openCall() (send func([][]byte), isOpen bool)         { return nil, true }

func (x *recorded) forward(flow *Flow, edits ...wire.Edit) {
	tool := ""
	if flow != nil {
		tool = flow.Tool
	}
	x.note("forward flow=%v tool=%q edits=%d", flow != nil, tool, len(edits))
}

// TestRoute checks what the gateway does with each kind of message, on any transport.
func TestRoute(t *testing.T) {
	g := New(Config{Server: newServer(t, taskserver.Options{}, idleTool()).Backend(), Stateful: http.NotFoundHandler(), Stateless: http.NotFoundHandler()})
	s := &session{id: "s", principal: "p"}
	s.setNegotiated(g, mcptask.Revision20251125, nil, nil)
	s.ended, s.end = context.WithCancel(t.Context())
	for _, c := range []struct {
		what, message   string
		modern, session bool
		want            string
	}{
		{"a notification", `"method":"notifications/x"`, false, true, "forward flow=false tool=\"\" edits=0"},
		{"one without a session", `"method":"notifications/x"`, false, false, "no session"},
		{"a cancellation", `"method":"notifications/cancelled","params":{"requestId":1}`, false, true, "cancel|forward flow=false tool=\"\" edits=0"},
		{"one without a session", `"method":"notifications/cancelled","params":{"requestId":1}`, false, false, "no session"},
		{"one of 2026-07-28", `"method":"notifications/cancelled","params":{"requestId":1}`, true, false, "forward flow=false tool=\"\" edits=0"},
		{"a notification about tasks", `"method":"notifications/tasks/status"`, false, true, "accept"},
		{"one of 2026-07-28", `"method":"notifications/tasks"`, true, false, "accept"},
		{"a response to the SDK", `"id":"x","result":{}`, false, true, "forward flow=false tool=\"\" edits=0"},
		{"a response to us", `"id":"mcptask/TASK/key","result":{}`, false, true, "accept"},
		{"one without a session", `"id":"mcptask/TASK/key","result":{}`, false, false, "no session"},
		{"a request about tasks", `"id":1,"method":"notifications/tasks"`, false, true, "refuse -32601"},
		{"initialize", `"id":1,"method":"initialize"`, false, false, "initialize"},
		{"a poll", `"id":1,"method":"tasks/get","params":{"taskId":"x"}`, false, true, "answer waits=false failed=true"},
		{"one without a session", `"id":1,"method":"tasks/get","params":{"taskId":"x"}`, false, false, "no session"},
		{"a wait", `"id":1,"method":"tasks/result","params":{"taskId":"x"}`, false, true, "answer waits=true failed=true"},
		{"a method that is not there", `"id":1,"method":"tasks/update","params":{"taskId":"x"}`, false, true, "refuse -32601"},
		{"a poll of 2026-07-28", `"id":1,"method":"tasks/get","params":{"taskId":"x",` + taskMeta + `}`, true, false, "answer waits=false failed=true"},
		{"a method that is not there", `"id":1,"method":"tasks/result","params":{"taskId":"x",` + taskMeta + `}`, true, false, "refuse -32601"},
		{"a call", `"id":1,"method":"tools/call","params":{"name":"t","arguments":{},"task":{}}`, false, true, "forward flow=true tool=\"t\" edits=0"},
		{"a call of another tool", `"id":1,"method":"tools/call","params":{"name":"x"}`, false, true, "forward flow=false tool=\"\" edits=0"},
		{"one that asks for a task", `"id":1,"method":"tools/call","params":{"name":"x","task":{}}`, false, true, "refuse -32601"},
		{"a call of 2026-07-28", `"id":1,"method":"tools/call","params":{"name":"t","arguments":{},"inputResponses":{},"requestState":"",` + taskMeta + `}`, true, false, "forward flow=true tool=\"t\" edits=2"},
		{"one with a number that is out of bounds", `"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1e-9999999},` + taskMeta + `}`, true, false, "forward flow=true tool=\"t\" edits=1"},
		{"a list", `"id":1,"method":"tools/list"`, false, true, "forward flow=true tool=\"\" edits=0"},
		{"a list of 2026-07-28", `"id":1,"method":"tools/list","params":{` + taskMeta + `}`, true, false, "forward flow=true tool=\"\" edits=0"},
		{"a subscription in a session", `"id":1,"method":"subscriptions/listen"`, false, true, "refuse -32601"},
		{"one of the SDK's", `"id":1,"method":"subscriptions/listen","params":{"notifications":{},` + taskMeta + `}`, true, false, "forward open"},
		{"one to tasks", `"id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":[]},` + taskMeta + `}`, true, false, "send|answer waits=true failed=false"},
		{"one to both", `"id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":[],"toolsListChanged":true},` + taskMeta + `}`, true, false, "send|answer waits=true failed=false"},
		{"discovery", `"id":1,"method":"server/discover","params":{` + taskMeta + `}`, true, false, "forward flow=true tool=\"\" edits=0"},
		{"anything else", `"id":1,"method":"resources/list"`, false, true, "forward flow=false tool=\"\" edits=0"},
		{"an initialize that is too big", `"id":1,"method":"initialize","params":[` + strings.Repeat("1,", maxInitializeValues) + `1]`, false, false, "refuse -32600"},
	} {
		m, refusal := parseMessage([]byte(`{"jsonrpc":"2.0",` + c.message + `}`))
		if refusal != nil {
			t.Fatalf("%s: %v", c.message, refusal)
		}
		x := &recorded{m: m, isModern: c.modern}
		if c.session {
			x.session = s
		}
		if g.route(x); !slices.Equal(x.did, strings.Split(c.want, "|")) {
			t.Errorf("%s: %.100s: %q, want %q", c.what, c.message, x.did, c.want)
		}
	}
}

// TestModernOrder checks that a task is not looked up before the headers fit (T-39).
func TestModernOrder(t *testing.T) {
	g, _ := countPassed(t)
	for capabilities, want := range map[string]int{
		`{}`: spec.CodeMissingClientCapability,
		`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`: spec.CodeHeaderMismatch,
	} {
		m, refusal := parseMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`))
		if refusal != nil {
			t.Fatal(refusal)
		}
		x := &recorded{m: m, isModern: true, badHeader: mcptask.Errorf(spec.CodeHeaderMismatch, "no")}
		if g.route(x); !slices.Equal(x.did, []string{fmt.Sprintf("refuse %d", want)}) {
			t.Errorf("%s: %q, want %d", capabilities, x.did, want)
		}
	}
}
