// Package serve serves the golden packages to their own generated clients and checks the messages
// on the wire. It is for tests.
package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// Session is a server of one package with a client, in one revision. It is a connection that checks
// its values against the schemas that the server lists.
type Session struct {
	mcptask.Conn

	*testing.T

	inputs        map[string]*validator.Schema
	outputs       map[string]*validator.Schema
	mu            sync.Mutex
	called, asked map[string]bool
	result        json.RawMessage // the structured content that came last
}

// Each serves services in every revision, in a bubble in which waiting takes no time, and lets use call them. use must
// call every tool, and the tools must ask the questions for the types named in want.
func Each(t *testing.T, answer func(*Session) mcptask.Answerer, want []string, use func(*Session), services ...mcptask.Tools) {
	t.Helper()
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			s := &Session{
				T: t, inputs: map[string]*validator.Schema{}, outputs: map[string]*validator.Schema{},
				called: map[string]bool{}, asked: map[string]bool{},
			}
			var options mcptasktest.Options
			if answer != nil {
				options.Answer = answer(s)
			}
			s.Conn = mcptasktest.Connect(wirecheck.TB(t), revision, options, services...)
			tools, err := s.ListTools(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range tools {
				if ofFallback.MatchString(tool.Name) {
					continue // the runtime's own, for clients without tasks, and tested there
				}
				s.inputs[tool.Name] = checkSchema(t, tool.Name+" input", tool.InputSchema)
				if len(tool.OutputSchema) > 0 {
					s.outputs[tool.Name] = checkSchema(t, tool.Name+" output", tool.OutputSchema)
				}
			}
			use(s)
			for _, name := range slices.Sorted(maps.Keys(s.inputs)) {
				if !s.called[name] {
					t.Errorf("no test calls %s", name)
				}
			}
			if asked := slices.Sorted(maps.Keys(s.asked)); !slices.Equal(asked, want) {
				t.Errorf("asked for %v, want %v", asked, want)
			}
		})
	})
}

// ofFallback matches the names of the tools that fallback=tools adds.
var ofFallback = regexp.MustCompile(`(^|_)task_(status|result|list|cancel|answer)$`)

type unchecked struct{}

// Unchecked returns a context for a call whose arguments the server must refuse.
func (s *Session) Unchecked() context.Context {
	return context.WithValue(s.Context(), unchecked{}, true)
}

// CallTool implements mcptask.Conn.
func (s *Session) CallTool(ctx context.Context, call mcptask.ToolCall) (mcptask.Snapshot, error) {
	s.mu.Lock()
	s.called[call.Tool] = true
	s.mu.Unlock()
	if ctx.Value(unchecked{}) == nil {
		s.valid(call.Tool+" input", s.inputs[call.Tool], call.Arguments)
	}
	return s.keep(s.Conn.CallTool(ctx, call))
}

// Task implements mcptask.Conn.
func (s *Session) Task(ctx context.Context, taskID string) (mcptask.Snapshot, error) {
	return s.keep(s.Conn.Task(ctx, taskID))
}

// keep keeps the result in a snapshot.
func (s *Session) keep(snapshot mcptask.Snapshot, err error) (mcptask.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if snapshot.Result != nil {
		s.result = snapshot.Result.Structured
	}
	return snapshot, err
}

// Answers returns a function that answers a question with a value, which its schema has to admit.
func Answers[T any](s *Session, answer T) func(context.Context, mcptask.Question) (T, error) {
	return func(_ context.Context, q mcptask.Question) (T, error) {
		s.mu.Lock()
		s.asked[q.Input] = true
		s.mu.Unlock()
		schema := checkSchema(s.T, q.Input, q.Schema)
		checkFlat(s.T, q.Input, q.Schema)
		written, err := json.Marshal(answer)
		s.valid(q.Input, schema, written)
		return answer, err
	}
}

func (s *Session) valid(where string, schema *validator.Schema, written []byte) {
	s.Helper()
	if schema == nil {
		s.Errorf("%s has no schema", where)
		return
	}
	value, err := validator.UnmarshalJSON(bytes.NewReader(written))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		s.Errorf("%s: %s: %v", where, written, err)
	}
}

// Wants makes one call. It must return the value that the implementation returned, in which empty lists and maps are as
// good as nil, and the tool's schema must admit what the server sent.
func Wants[Out any](s *Session, tool string, want Out, call func() (Out, error)) {
	s.Helper()
	s.mu.Lock()
	s.called[tool] = false
	s.mu.Unlock()
	got, err := call()
	if err != nil {
		s.Errorf("%s: %v", tool, err)
		return
	}
	if !s.called[tool] {
		s.Errorf("this does not call %s", tool)
	}
	if d := cmp.Diff(want, got, everyField, cmpopts.EquateEmpty()); d != "" {
		s.Errorf("%s (-sent +got):\n%s", tool, d)
	}
	if schema, ok := s.outputs[tool]; ok {
		s.valid(tool+" output", schema, s.result)
	}
}

// everyField compares unexported fields too.
var everyField = cmp.Exporter(func(reflect.Type) bool { return true })

// Returns calls a tool with an input and wants an output.
func Returns[In, Out any](s *Session, tool string, call func(context.Context, In, ...mcptask.CallOption) (Out, error), in In, want Out) {
	s.Helper()
	Wants(s, tool, want, func() (Out, error) { return call(s.Context(), in) })
}

// Echoes calls a tool that returns its input with each of the values.
func Echoes[T any](s *Session, tool string, call func(context.Context, T, ...mcptask.CallOption) (T, error), values ...T) {
	s.Helper()
	for _, value := range values {
		Returns(s, tool, call, value, value)
	}
}
