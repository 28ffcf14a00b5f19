package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestOutcomes checks the outcomes that tasks and plain calls make of a handler's results and errors. An outcome is
// always valid JSON and UTF-8. Anything else would end the session of its client, or stay in the store.
func TestOutcomes(t *testing.T) {
	type key struct{}
	var nilError *mcptask.Error
	shared := &mcptask.Result{}
	spec := mcptask.ToolSpec{InputSchema: `{"type":"object"}`}
	handled := func(handler func(context.Context) (*mcptask.Result, error)) mcptask.Tool {
		return mcptask.NewTool(spec, func(ctx context.Context, _ *mcptask.Task, _ struct{}) (*mcptask.Result, error) { return handler(ctx) })
	}
	returned := func(r *mcptask.Result, err error) mcptask.Tool {
		return handled(func(context.Context) (*mcptask.Result, error) { return r, err })
	}
	withData := func(data string) mcptask.Tool {
		return returned(nil, &mcptask.Error{Code: 4000, Message: "no", Data: json.RawMessage(data)})
	}
	raw := func(result string) mcptask.Tool {
		return mcptask.NewRawTool(spec, func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(result), nil })
	}
	misfit := spec
	misfit.OutputSchema = `{"type":"object","required":["x"]}`
	listed := spec
	listed.OutputSchema = `{"type":"object","properties":{"list":{"type":"array"}},"required":["list"]}`
	nilList := mcptask.NewTool(listed, func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) {
		return nil, &mcptask.ToolError{Result: &mcptask.Result{Content: []mcptask.Content{mcptask.TextContent("no")}, Structured: json.RawMessage(`{"list":null}`)}}
	})
	schemed := spec
	schemed.OutputSchema = `{"type":"object"}`
	deep := func(n int) json.RawMessage { return json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	tooDeep := deep(validate.MaxDepth + 1)
	const unbounded = "error the tool's result has more than 1000 objects and arrays within each other, or a number of more than 1000 characters or with an exponent that is not from -307 to 308 (code -32603) "
	failed := &mcptask.ToolError{Tool: "encode", Result: &mcptask.Result{
		Content: []mcptask.Content{mcptask.TextContent("full"), mcptask.LinkContent("a:b", "log")}, Structured: json.RawMessage(`{"n":1}`), IsError: true,
		Meta: map[string]json.RawMessage{
			"io.github.mcptaskgen/error": json.RawMessage(`{"code":"disk_full"}`), "io.github.mcptaskgen/task": json.RawMessage(`{}`),
			"io.modelcontextprotocol/related-task": json.RawMessage(`{"taskId":"another"}`), "example.com/a": json.RawMessage(`1`),
		},
	}}
	passed := func(text string) string {
		return `result {"content":[{"text":"` + text + `","type":"text"},{"name":"log","type":"resource_link","uri":"a:b"}],"structuredContent":{"n":1},"isError":true,` +
			`"_meta":{"example.com/a":1,"io.github.mcptaskgen/error":{"code":"disk_full"}}}`
	}
	const internal = "error internal error (code -32603) "
	cases := []struct {
		name string
		tool mcptask.Tool
		want string
	}{
		{"deadline", numberTool("", mcptask.Policy{Deadline: time.Second, TTL: time.Hour}, hang), `error deadline did not finish within its deadline of 1s (code -32603) {"reason":"deadline"}`},
		{"panic", handled(func(context.Context) (*mcptask.Result, error) { panic("secret") }), internal},
		{"goexit", handled(func(context.Context) (*mcptask.Result, error) { runtime.Goexit(); return nil, nil }), internal},
		{"plain error", returned(nil, errors.New("no such branch")), `result {"content":[{"text":"no such branch","type":"text"}],"isError":true}`},
		{"wrapped", returned(nil, fmt.Errorf("wrapped: %w", &mcptask.Error{Code: 4050, Message: "locked", Data: json.RawMessage(`{"by":"x"}`)})), `error locked (code 4050) {"by":"x"}`},
		{"typed nil", returned(nil, nilError), internal},
		{"reserved code", returned(nil, mcptask.Errorf(-32050, "locked")), "error locked (code -32603) "},
		{"invalid params", returned(nil, mcptask.Errorf(mcptask.CodeInvalidParams, "no")), "error no (code -32602) "},
		{"code beside the reserved ones", returned(nil, mcptask.Errorf(-31999, "no")), "error no (code -31999) "},
		{"typed error", returned(nil, &missing{Asset: "a"}), codedResult("no a", `{"code":"missing","data":{"asset":"a"}}`)},
		{"wrapped typed error", returned(nil, fmt.Errorf("publish: %w", &missing{Asset: "a"})), codedResult("publish: no a", `{"code":"missing","data":{"asset":"a"}}`)},
		{"joined typed error", returned(nil, errors.Join(errors.New("x"), &missing{Asset: "a"}, valued{})), codedResult(`x\nno a\nvalue`, `{"code":"missing","data":{"asset":"a"}}`)},
		{"value", returned(nil, valued{N: 5}), codedResult("value", `{"code":"valued","data":{"N":5}}`)},
		{"pointer to a value", returned(nil, &valued{N: 5}), codedResult("value", `{"code":"valued","data":{"N":5}}`)},
		{"nil typed error", returned(nil, (*missing)(nil)), internal},
		{"nil typed error of a value", returned(nil, (*valued)(nil)), internal},
		{"without a code", returned(nil, uncoded{}), `result {"content":[{"text":"uncoded","type":"text"}],"isError":true}`},
		{"fields that JSON has not", returned(nil, &missing{Any: make(chan int)}), codedResult("no ", `{"code":"missing"}`)},
		{"fields that are too deep", returned(nil, &missing{Any: tooDeep}), codedResult("no ", `{"code":"missing"}`)},
		{"typed error around a JSON-RPC error", returned(nil, &missing{Asset: "a", cause: mcptask.Errorf(4050, "gone")}), codedResult("no a", `{"code":"missing","data":{"asset":"a"}}`)},
		{"typed error beside a JSON-RPC error", returned(nil, errors.Join(&missing{}, mcptask.Errorf(4050, "gone"))), "error gone (code 4050) "},
		{"typed error after the deadline", numberTool("", mcptask.Policy{Deadline: time.Second, TTL: time.Hour}, func(ctx context.Context, _ *mcptask.Task, _ number) (number, error) {
			<-ctx.Done()
			return number{}, &missing{}
		}), `error typed_error_after_the_deadline did not finish within its deadline of 1s (code -32603) {"reason":"deadline"}`},
		{"tool error", returned(nil, failed), passed("full")},
		{"wrapped tool error", returned(nil, fmt.Errorf("wrapped_tool_error: again: %w", failed)), passed("again: encode: full")},
		{"tool error without a text", returned(nil, &mcptask.ToolError{Tool: "encode", Result: &mcptask.Result{IsError: true}}), `result {"content":[{"text":"encode: the tool reported an error without a text","type":"text"}],"isError":true}`},
		{"tool error without a result", returned(nil, &mcptask.ToolError{Tool: "encode"}), `result {"content":[{"text":"encode: the tool reported an error without a text","type":"text"}],"isError":true}`},
		{"nil tool error", returned(nil, fmt.Errorf("x: %w", (*mcptask.ToolError)(nil))), `result {"content":[{"text":"x: \u003cnil\u003e","type":"text"}],"isError":true}`},
		{"tool error with a nil list", nilList, `result {"content":[{"text":"no","type":"text"}],"structuredContent":{"list":[]},"isError":true}`},
		{"tool error that is not JSON", returned(nil, &mcptask.ToolError{Result: &mcptask.Result{Structured: json.RawMessage("{")}}), internal},
		{"tool error beside a schema", mcptask.NewTool(misfit, func(context.Context, *mcptask.Task, struct{}) (number, error) { return number{}, failed }), strings.Replace(passed("full"), `"structuredContent":{"n":1},`, "", 1)},
		{"tool error that is too deep", returned(nil, &mcptask.ToolError{Result: &mcptask.Result{Structured: tooDeep}}), unbounded},
		{"nothing", returned(nil, nil), `result {"content":[{"text":"the handler returned neither a result nor an error","type":"text"}],"isError":true}`},
		{"shared", returned(shared, nil), `result {"content":[]}`},
		{"misfit", mcptask.NewTool(misfit, func(context.Context, *mcptask.Task, struct{}) (number, error) { return number{}, nil }), `error the tool's output does not fit its schema: x (code -32603) `},
		{"not encoded", mcptask.NewTool(misfit, func(context.Context, *mcptask.Task, struct{}) (any, error) {
			return map[string]any{"x": math.NaN()}, nil
		}), `error the tool's output cannot be encoded (code -32603) `},
		{"context", handled(func(ctx context.Context) (*mcptask.Result, error) {
			return &mcptask.Result{Content: []mcptask.Content{mcptask.TextContent(fmt.Sprint(ctx.Value(key{})))}}, nil
		}), `result {"content":[{"text":"alice's","type":"text"}]}`},
		{"context ends", handled(func(ctx context.Context) (*mcptask.Result, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return nil, ctx.Err()
		}), `result {"content":[{"text":"context deadline exceeded","type":"text"}],"isError":true}`},
		{"valid data", withData(`{"a":5}`), `error no (code 4000) {"a":5}`},
		{"invalid data", withData(`{"a":`), `error no (code 4000) `},
		{"data of two values", withData(`{} {}`), `error no (code 4000) `},
		{"data that is not UTF-8", withData("[\"a\xff\"]"), "error no (code 4000) [\"a\uFFFD\"]"},
		{"message that is not UTF-8", returned(nil, &mcptask.Error{Code: 4000, Message: "n\xffo"}), "error n\uFFFDo (code 4000) "},
		{"invalid structured content", returned(&mcptask.Result{Structured: json.RawMessage(`{`)}, nil), internal},
		{"nil content", returned(&mcptask.Result{Content: []mcptask.Content{nil}}, nil), internal},
		{"invalid content", returned(&mcptask.Result{Content: []mcptask.Content{mcptask.Content(`{`)}}, nil), internal},
		{"invalid _meta", returned(&mcptask.Result{Meta: map[string]json.RawMessage{"a": json.RawMessage(`x`)}}, nil), internal},
		{"structured content that is not UTF-8", returned(&mcptask.Result{Structured: json.RawMessage("{\"a\":\"\xff\"}")}, nil), "result {\"content\":[],\"structuredContent\":{\"a\":\"\uFFFD\"}}"},
		{"invalid raw result", raw(`{"a":`), internal},
		{"raw result of several lines", raw("{\n\"a\":\n5}"), `result {"a":5}`},
		{"empty raw result", raw(""), internal},
		{"the deepest structured content", returned(&mcptask.Result{Structured: deep(validate.MaxDepth)}, nil), `result {"content":[],"structuredContent":` + string(deep(validate.MaxDepth)) + `}`},
		{"structured content that is too deep", returned(&mcptask.Result{Structured: tooDeep}, nil), unbounded},
		{"structured content of a tool error that is too deep", returned(&mcptask.Result{Structured: tooDeep, IsError: true}, nil), unbounded},
		{"structured content with an absurd number", returned(&mcptask.Result{Structured: json.RawMessage(`{"n":1e-9999999}`)}, nil), unbounded},
		{"content that is too deep", returned(&mcptask.Result{Content: []mcptask.Content{mcptask.Content(`{"type":"a","a":` + string(tooDeep) + `}`)}}, nil), unbounded},
		{"content with a list", returned(&mcptask.Result{Content: []mcptask.Content{mcptask.Content(`[{"type":"text","text":"a"}]`)}}, nil), internal},
		{"_meta that is too deep", returned(&mcptask.Result{Meta: map[string]json.RawMessage{"a": tooDeep}}, nil), unbounded},
		{"_meta beside a schema", mcptask.NewTool(schemed, func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) {
			return &mcptask.Result{Structured: json.RawMessage(`{}`), Meta: map[string]json.RawMessage{"a": tooDeep}}, nil
		}), unbounded},
		{"raw result that is too deep", raw(string(tooDeep)), unbounded},
		{"raw result with a long number", raw(`{"n":` + strings.Repeat("1", validate.MaxNumber+1) + `}`), unbounded},
		{"data that is too deep", withData(string(tooDeep)), `error no (code 4000) `},
	}
	log := &logged{}
	bubble.Test(t, func(t *testing.T) {
		var tools []mcptask.Tool
		for _, c := range cases {
			c.tool.Spec.Name = strings.ReplaceAll(c.name, " ", "_")
			tools = append(tools, c.tool)
		}
		s := newServer(t, Options{Logger: log.logger(), Context: func(ctx context.Context, principal string) (context.Context, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			context.AfterFunc(ctx, cancel)
			switch principal {
			case "bob":
				return nil, errors.New("secret")
			case "carol":
				return nil, nilError
			}
			return context.WithValue(ctx, key{}, principal+"'s"), nil
		}}, tools...)
		for i, c := range cases {
			name := tools[i].Spec.Name
			r := ended(t, s, alice, begin(t, s, alice, name).ID)
			if got := outcomeText(r.Outcome); got != c.want || !utf8.ValidString(r.StatusMessage) {
				t.Errorf("%s:\n got %s, %q\nwant %s", c.name, got, r.StatusMessage, c.want)
			}
			if c.name == "goexit" {
				continue // ends the goroutine of a plain call, which is the caller's
			}
			if plain, err := call(s, alice, name, ModePlain); err != nil || outcomeText(plain.Outcome) != c.want {
				t.Errorf("%s, plain:\n got %s, %v\nwant %s", c.name, outcomeText(plain.Outcome), err, c.want)
			}
		}
		for _, principal := range []string{"bob", "carol"} {
			caller := Caller{Principal: principal}
			if got := outcomeText(ended(t, s, caller, begin(t, s, caller, "deadline").ID).Outcome); got != internal {
				t.Errorf("without a context for %s: %s", principal, got)
			}
		}
	})
	if len(failed.Result.Meta) != 4 || len(failed.Result.Content) != 2 {
		t.Errorf("the handler's own tool error was changed: %+v", failed.Result)
	}
	if text := log.String(); strings.Count(text, "reserved code") != 1 || !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "code=-32050") {
		t.Errorf("the reserved code is not logged once:\n%s", text)
	}
	if shared.Content != nil {
		t.Error("the handler's own result was changed")
	}
	if !strings.Contains(log.String(), `panic=secret`) || !strings.Contains(log.String(), "no context for the principal") {
		t.Errorf("the log does not tell the operator:\n%s", log)
	}
}

// missing implements error with its pointer.
type missing struct {
	Asset string `json:"asset"`
	Any   any    `json:"any,omitempty"`
	cause error
}

func (m *missing) Error() string       { return "no " + m.Asset }
func (m *missing) Unwrap() error       { return m.cause }
func (*missing) ToolErrorCode() string { return "missing" }

// valued implements error with its value.
type valued struct{ N int }

func (valued) Error() string         { return "value" }
func (valued) ToolErrorCode() string { return "valued" }

// uncoded has an empty code.
type uncoded struct{ valued }

func (uncoded) Error() string         { return "uncoded" }
func (uncoded) ToolErrorCode() string { return "" }

// codedResult returns the text of the outcome of a typed error.
func codedResult(text, meta string) string {
	return `result {"content":[{"text":"` + text + `","type":"text"}],"isError":true,"_meta":{"io.github.mcptaskgen/error":` + meta + `}}`
}

// TestErrorSchemas checks that the fields of a typed error are sent as its schema has them, and as they are without one.
func TestErrorSchemas(t *testing.T) {
	for schema, want := range map[string]string{"": `{"N":null}`, `{"type":"object","properties":{"N":{"type":"array"}},"required":["N"]}`: `{"N":[]}`} {
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskForbidden}},
			func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) { return nil, listing{} })
		server, err := New(Options{}, mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: []mcptask.Tool{tool}, Errors: []mcptask.ErrorSpec{{Code: "listing", Schema: schema}}})
		if err != nil {
			t.Fatal(err)
		}
		reply, err := server.Backend().Call(t.Context(), Caller{}, "t", json.RawMessage(`{}`), CallRequest{})
		if err != nil || !strings.Contains(string(reply.Outcome.Result), want) {
			t.Errorf("with the schema %q: %s, %v, want %s", schema, reply.Outcome.Result, err, want)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
}

// listing is a typed error with a nil list.
type listing struct{ N []int }

func (listing) Error() string         { return "listing" }
func (listing) ToolErrorCode() string { return "listing" }
