package mcptask

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// What a handler returns reaches the wire as JSON, whatever it is: one that is not would end the
// session of its client, or stay in the store for ever.
func TestOutcomesAreWellFormed(t *testing.T) {
	failing := func(e *Error) func(context.Context, *Task, struct{}) (*Result, error) {
		return func(context.Context, *Task, struct{}) (*Result, error) { return nil, e }
	}
	giving := func(r *Result) func(context.Context, *Task, struct{}) (*Result, error) {
		return func(context.Context, *Task, struct{}) (*Result, error) { return r, nil }
	}
	spec := ToolSpec{Name: "tool", InputSchema: `{"type":"object"}`}
	raw := func(text string) Tool {
		return NewRawTool(spec, func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(text), nil })
	}
	for name, c := range map[string]struct {
		tool Tool
		want string
	}{
		"data that is no JSON":          {NewTool(spec, failing(&Error{Code: -32000, Message: "no", Data: json.RawMessage(`{"a":`)})), `{"code":-32000,"message":"no"}`},
		"data that is two values":       {NewTool(spec, failing(&Error{Code: -32000, Message: "no", Data: json.RawMessage(`{} {}`)})), `{"code":-32000,"message":"no"}`},
		"data that is no UTF-8":         {NewTool(spec, failing(&Error{Code: -32000, Message: "no", Data: json.RawMessage("[\"a\xff\"]")})), `{"code":-32000,"message":"no","data":["a` + "\uFFFD" + `"]}`},
		"data that is sound":            {NewTool(spec, failing(&Error{Code: -32000, Message: "no", Data: json.RawMessage(`{"a":5}`)})), `{"code":-32000,"message":"no","data":{"a":5}}`},
		"a message that is no UTF-8":    {NewTool(spec, failing(&Error{Code: -32000, Message: "n\xffo"})), `{"code":-32000,"message":"n` + "\uFFFD" + `o"}`},
		"structured that is no JSON":    {NewTool(spec, giving(&Result{Structured: json.RawMessage(`{`)})), `internal error`},
		"content that is no JSON":       {NewTool(spec, giving(&Result{Content: []Content{Content(`{`)}})), `internal error`},
		"_meta that is no JSON":         {NewTool(spec, giving(&Result{Meta: map[string]json.RawMessage{"a": json.RawMessage(`x`)}})), `internal error`},
		"structured that is no UTF-8":   {NewTool(spec, giving(&Result{Structured: json.RawMessage("{\"a\":\"\xff\"}")})), `{"content":[],"structuredContent":{"a":"` + "\uFFFD" + `"}}`},
		"a raw result that is no JSON":  {raw(`{"a":`), `internal error`},
		"a raw result of several lines": {raw("{\n\"a\":\n5}"), `{"a":5}`},
		"a raw result that is nothing":  {raw(""), `internal error`},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := NewServer(Options{Logger: slog.New(slog.DiscardHandler)}, Tools{Service: "S", Impl: struct{}{}, Tools: []Tool{c.tool}})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			plain, err := server.Call(t.Context(), Caller{Principal: "p"}, "tool", nil, CallRequest{Mode: ModePlain})
			if err != nil {
				t.Fatal(err)
			}
			created, err := server.Call(t.Context(), Caller{Principal: "p"}, "tool", nil, CallRequest{Mode: ModeTask})
			if err != nil {
				t.Fatal(err)
			}
			stored, err := server.Await(t.Context(), Caller{Principal: "p"}, created.Task.ID)
			if err != nil {
				t.Fatal(err)
			}
			for how, o := range map[string]*Outcome{"plain": plain.Outcome, "stored": stored.Outcome} {
				data := []byte(o.Result)
				if o.Error != nil {
					if data, err = json.Marshal(o.Error); err != nil {
						t.Errorf("%s: %v", how, err)
					}
				}
				if !json.Valid(data) || !utf8.Valid(data) || !strings.Contains(string(data), c.want) || o.Error != nil && !utf8.ValidString(o.Error.Message) {
					t.Errorf("%s: %q, want %s", how, data, c.want)
				}
			}
			if !utf8.ValidString(stored.StatusMessage) {
				t.Errorf("%q", stored.StatusMessage)
			}
		})
	}
}

// The name of a step is part of the ID that a question has at its client, so that one that is no
// UTF-8 would never get its answer.
func TestStepIsUTF8(t *testing.T) {
	tool := NewTool(ToolSpec{Name: "ask", InputSchema: `{"type":"object"}`}, func(ctx context.Context, task *Task, _ struct{}) (string, error) {
		_, err := task.Roots(ctx, "st\xffep")
		return "", err
	})
	server, err := NewServer(Options{Logger: slog.New(slog.DiscardHandler)}, Tools{Service: "S", Impl: struct{}{}, Tools: []Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	caller := Caller{Principal: "p", CanAsk: []string{"roots/list"}}
	created, err := server.Call(ctx, caller, "ask", nil, CallRequest{Mode: ModeTask})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := server.Await(ctx, caller, created.Task.ID); err != nil || !strings.Contains(string(r.Outcome.Result), "UTF-8") {
		t.Errorf("%+v, %v", r.Outcome, err)
	}
}
