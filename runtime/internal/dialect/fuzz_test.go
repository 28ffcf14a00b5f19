package dialect_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

var seeds = []string{
	`{"name":"t","arguments":{},"task":{}}`,
	`{"name":"t","task":{"ttl":1e300}}`, `{"task":{"ttl":-0.5}}`, `{"task":{"ttl":9223372036854775808}}`, `{"task":null}`, `{"task":[]}`,
	`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}}}`,
	`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":null}}}}`,
	`{"_meta":{"io.github.mcptaskgen/idempotency-key":"0123456789abcdef"}}`, `{"_meta":[]}`, `{"_meta":{"io.modelcontextprotocol/clientCapabilities":5}}`,
	`{"taskId":"x"}`, `{"taskId":5}`, `{"taskId":"x","inputResponses":{"k":{"action":"accept"}}}`, `{"taskId":"x","inputResponses":[]}`,
	`{"cursor":"AAAAAAAAAAAAAAAAAAAAAA"}`, `{"cursor":"\n"}`, `{"cursor":5}`, `[]`, `null`, `"x"`, `5`, ``,
}

// refusal fails unless an error is a JSON-RPC error with a message.
func refusal(t *testing.T, params []byte, err error) {
	t.Helper()
	var wire *mcptask.Error
	if !errors.As(err, &wire) || wire.Message == "" || wire.Code == mcptask.CodeInternalError {
		t.Errorf("%q: %v", params, err)
	}
}

// FuzzNegotiate decides tools/call with params of any kind.
func FuzzNegotiate(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		if len(params) > 0 && !json.Valid(params) {
			return // the gateway has refused it
		}
		for _, d := range dialect.Servers() {
			_ = d.CanAsk(params)
			for _, support := range []mcptask.TaskSupport{mcptask.TaskForbidden, mcptask.TaskOptional, mcptask.TaskRequired} {
				spec := mcptask.ToolSpec{Name: "t", Policy: mcptask.Policy{Task: support}}
				if call, err := d.Negotiate(spec, true, params); err == nil && (call.Mode == mcptask.ModePlain) != (support == mcptask.TaskForbidden) {
					t.Errorf("%q: mode %v with a fallback, of a tool that is %s", params, call.Mode, support)
				}
				call, err := d.Negotiate(spec, false, params)
				if err != nil {
					refusal(t, params, err)
					continue
				}
				if call.TTL != nil && *call.TTL < 0 {
					t.Errorf("%q: a ttl of %v", params, *call.TTL)
				}
				if support == mcptask.TaskForbidden && call.Mode != mcptask.ModePlain || support == mcptask.TaskRequired && call.Mode == mcptask.ModePlain {
					t.Errorf("%q: mode %v of a tool that is %s", params, call.Mode, support)
				}
			}
		}
	})
}

// FuzzMethods answers every task method with params of any kind.
func FuzzMethods(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	tasks, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, params []byte) {
		if len(params) > 0 && !json.Valid(params) {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		caller := mcptask.Caller{Principal: "p"}
		for _, d := range dialect.Servers() {
			for _, name := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update", "tasks/", ""} {
				method := d.Method(name)
				if method == nil {
					continue
				}
				result, err := method(ctx, tasks, caller, params)
				switch {
				case err != nil:
					refusal(t, params, err)
				case name != "tasks/list": // there is no task at all
					t.Errorf("%s of %q: %s", name, params, result)
				}
			}
			if err := d.Check(params); err != nil {
				refusal(t, params, err)
			}
		}
	})
}
