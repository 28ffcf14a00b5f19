package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

var seeds = []string{
	`{"name":"t","arguments":{},"task":{}}`,
	`{"name":"t","task":{"ttl":1e300}}`, `{"task":{"ttl":-0.5}}`, `{"task":{"ttl":9223372036854775808}}`, `{"task":null}`, `{"task":[]}`,
	`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}}}`,
	`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":null}}}}`,
	`{"_meta":{"io.github.mcptaskgen/idempotency-key":"0123456789abcdef"}}`, `{"_meta":[]}`, `{"_meta":{"io.modelcontextprotocol/clientCapabilities":5}}`,
	`{"notifications":{"taskIds":["a","a","b"]}}`, `{"notifications":{"taskIds":[5],"toolsListChanged":true}}`, `{"notifications":[]}`, `{"notifications":{"taskIds":null}}`,
	`{"name":"t","_meta":{"taskId":"x"}}`, `{"_meta":{"taskId":5}}`, `{"_meta":{"taskId":"\u0000"}}`, `{"id":"x"}`, `{"id":5}`, `{"id":null,"taskId":"x"}`,
	`{"taskId":"x"}`, `{"taskId":5}`, `{"taskId":"x","inputResponses":{"k":{"action":"accept"}}}`, `{"taskId":"x","inputResponses":[]}`,
	`{"_meta":{"modelcontextprotocol.io/task":{"taskId":"x","keepAlive":1e300}}}`, `{"_meta":{"modelcontextprotocol.io/task":{"taskId":null}}}`, `{"_meta":{"modelcontextprotocol.io/task":5}}`,
	`{"cursor":"AAAAAAAAAAAAAAAAAAAAAA"}`, `{"cursor":"\n"}`, `{"cursor":5}`, `[]`, `null`, `"x"`, `5`, ``,
}

// fuzzParams fuzzes the params of a request. They are valid JSON, because the gateway refuses everything else.
func fuzzParams(f *testing.F, try func(t *testing.T, params []byte)) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		if len(params) == 0 || json.Valid(params) {
			try(t, params)
		}
	})
}

// refusal fails the test unless an error is a JSON-RPC error with a message.
func refusal(t *testing.T, params []byte, err error) {
	t.Helper()
	var wire *mcptask.Error
	if !errors.As(err, &wire) || wire.Message == "" || wire.Code == mcptask.CodeInternalError {
		t.Errorf("%q: %v", params, err)
	}
}

// FuzzNegotiate negotiates a tools/call with any params.
func FuzzNegotiate(f *testing.F) {
	fuzzParams(f, func(t *testing.T, params []byte) {
		for _, d := range slices.Concat(protocol.Servers(), unofficial.Servers()) {
			_ = d.CanAsk(wire.NewObject(params))
			for _, support := range []mcptask.TaskSupport{mcptask.TaskForbidden, mcptask.TaskOptional, mcptask.TaskRequired} {
				spec := mcptask.ToolSpec{Name: "t", Policy: mcptask.Policy{Task: support}}
				if call, err := d.Negotiate(spec, true, wire.NewObject(params)); err == nil && (call.Mode == taskserver.ModePlain) != (support == mcptask.TaskForbidden) {
					t.Errorf("%q: mode %v with a fallback, of a tool that is %s", params, call.Mode, support)
				}
				call, err := d.Negotiate(spec, false, wire.NewObject(params))
				if err != nil {
					refusal(t, params, err)
					continue
				}
				if call.TTL != nil && *call.TTL < 0 {
					t.Errorf("%q: a ttl of %v", params, *call.TTL)
				}
				_, plainly := d.(unofficial.ServerSEP1686) // no tool requires a task there
				if support == mcptask.TaskForbidden && call.Mode != taskserver.ModePlain || support == mcptask.TaskRequired && call.Mode == taskserver.ModePlain && !plainly {
					t.Errorf("%q: mode %v of a tool that is %s", params, call.Mode, support)
				}
			}
		}
	})
}

// FuzzMethods answers every task method with any params.
func FuzzMethods(f *testing.F) {
	tasks, err := taskserver.New(taskserver.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			f.Error(err)
		}
	})
	fuzzParams(f, func(t *testing.T, params []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		caller := taskserver.Caller{Principal: "p"}
		for _, d := range slices.Concat(protocol.Servers(), unofficial.Servers()) {
			for _, name := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update", "tasks/delete", "tasks/", ""} {
				method := d.Method(name)
				if method == nil {
					continue
				}
				result, err := method(ctx, tasks.Backend(), caller, wire.NewObject(params))
				switch {
				case err != nil:
					refusal(t, params, err)
				case name != "tasks/list": // there is no task
					t.Errorf("%s of %q: %s", name, params, result)
				}
			}
			if err := d.Check(wire.NewObject(params)); err != nil {
				refusal(t, params, err)
			}
		}
	})
}

// FuzzSubscribe reads a subscriptions/listen with any params.
func FuzzSubscribe(f *testing.F) {
	fuzzParams(f, func(t *testing.T, params []byte) {
		var d protocol.Server20260728
		names := d.NamesTasks(wire.NewObject(params))
		tasks, err := d.Subscribe(wire.NewObject(params))
		if err != nil {
			refusal(t, params, err)
			return
		}
		if !names && len(tasks) > 0 {
			t.Errorf("%q: %v, though it names no tasks", params, tasks)
		}
		ack, err := d.Acknowledged(json.RawMessage("1"), tasks)
		if err != nil || !json.Valid(ack) {
			t.Errorf("%q: %s %v", params, ack, err)
		}
	})
}

// FuzzRequestor reads the capabilities of a client of 2025-11-25, and its answers about its tasks.
func FuzzRequestor(f *testing.F) {
	const task = `{"taskId":"r","status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null,"pollInterval":5000}`
	for _, seed := range append([]string{
		task, `{"task":` + task + `}`, `{"task":{"taskId":"r","status":"x"}}`, `{"task":{"taskId":"","status":"working"}}`, `{"task":5}`,
		`{"taskId":"r","status":"working","ttl":-1,"pollInterval":9223372036854775807}`, `{"action":"accept","content":{}}`,
		`{"tasks":{"cancel":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}}`, `{"tasks":{"requests":{"elicitation":{"create":true}}}}`,
	}, seeds...) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := protocol.Server20251125{}.Requestor(data)
		if r.Augments("roots/list") || r.Augments("tools/call") || r.Augments("") {
			t.Errorf("%q: a request that cannot be a task becomes one", data)
		}
		started, ok, err := r.Started(data)
		state, taskErr := r.Task(data)
		for _, s := range []struct {
			mcptask.Snapshot
			read bool
		}{{started, ok && err == nil}, {state, taskErr == nil}} {
			if s.read && (s.TaskID == "" || s.Status == "" || s.Poll < 0) {
				t.Errorf("%q: %+v", data, s)
			}
		}
	})
}

// results are valid and invalid results of servers.
var results = []string{
	`{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1},"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}`,
	`{"task":{"taskId":"t","status":"working","ttl":null,"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z","pollInterval":1}}`,
	`{"taskId":"t","status":"completed","ttl":1,"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"}`,
	`{"taskId":"t","status":"unheard","ttl":1e300,"createdAt":"yesterday","lastUpdatedAt":5}`, `{"task":null}`, `{"task":{}}`,
	`{"resultType":"task","taskId":"t","status":"working","ttlMs":null,"pollIntervalMs":-1,"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"}`,
	`{"resultType":"complete","taskId":"t","status":"failed","ttlMs":9223372036854775807,"error":{"code":1,"message":"m"},"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"}`,
	`{"resultType":"complete","taskId":"t","status":"completed","ttlMs":1,"result":{"content":[]},"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"}`,
	`{"resultType":"complete","taskId":"t","status":"input_required","ttlMs":1,"inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}},"r":{"method":"roots/list"}},"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"}`,
	`{"resultType":"input_required","inputRequests":{"k":{"method":"sampling/createMessage","params":{}}},"requestState":"s"}`, `{"resultType":"other"}`, `{"resultType":5}`,
	`{"taskId":"t","status":"submitted","keepAlive":null,"pollFrequency":-1}`, `{"taskId":"t","status":"unknown","keepAlive":5,"error":"e"}`,
	`{"taskId":"t","status":"failed","keepAlive":null,"error":{"code":1}}`, `{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"t"}}}`,
}

// FuzzClients reads any answers of a server. If it reads one without an error, the client has a task or an outcome that
// it can continue with.
func FuzzClients(f *testing.F) {
	for _, first := range append(results, seeds...) {
		f.Add([]byte(first), []byte(results[0]))
	}
	for _, second := range results {
		f.Add([]byte(results[2]), []byte(second))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if !json.Valid(first) || !json.Valid(second) {
			return // the transport refuses it
		}
		usable := func(what string, s mcptask.Snapshot, retry *protocol.Retry, err error) {
			switch {
			case err != nil:
			case retry != nil:
				if s.Status != mcptask.StatusInputRequired || s.TaskID != "" {
					t.Errorf("%s of %q: a call to repeat that is %+v", what, first, s)
				}
			case s.Done() && s.Status != mcptask.StatusCancelled && s.Result == nil && s.Error == nil:
				t.Errorf("%s of %q, %q: done without an outcome: %+v", what, first, second, s)
			case !s.Done() && s.TaskID == "":
				t.Errorf("%s of %q: a task without an ID: %+v", what, first, s)
			case s.Poll < 0:
				t.Errorf("%s of %q: a polling interval of %v", what, first, s.Poll)
			}
		}
		for _, c := range slices.Concat(protocol.Clients(), unofficial.Clients()) {
			s, retry, err := c.Started(first)
			usable("started", s, retry, err)
			answers := [][]byte{first, second}
			send := func(context.Context, string, any) (json.RawMessage, error) {
				answer := answers[0]
				answers = answers[1:] // a client asks at most twice for one task
				return answer, nil
			}
			s, err = c.Task(t.Context(), send, "t")
			if err == nil && s.TaskID == "" {
				s.TaskID = "t" // a server may leave these out
			}
			usable("read", s, nil, err)
			if c, ok := c.(unofficial.ClientSEP1686); ok {
				for method, want := range map[string]bool{"notifications/tasks/created": true, "notifications/progress": false} {
					if id, ok := c.Announced(method, first); ok != want || id != "" && !want {
						t.Errorf("%s with %q announces %q, %v", method, first, id, ok)
					}
				}
			}
		}
	})
}
