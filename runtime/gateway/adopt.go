package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Binder binds a handler to the arguments of a call, as [mcptask.Tool.Bind].
type Binder = func(arguments json.RawMessage) (mcptask.BoundCall, error)

// Adopt registers a tool of an SDK's server with tasks. entry is the tool as the SDK lists it. The SDK checks the
// arguments and the output. A Policy.Task of "" means TaskOptional.
//
// A program may have the tool on several servers of the SDK, such as one for each session. Registrations with the same
// entry and policy are one tool. If they differ, Adopt returns an error that names the difference. The bind that was
// registered first serves the runs that no call to this process has begun, such as one after a restart: later ones may
// belong to a user. Other runs have the [taskserver.CallRequest.Bind] of their call.
func Adopt(tasks *taskserver.Server, entry json.RawMessage, policy mcptask.Policy, bind Binder) error {
	if policy.Task == "" {
		policy.Task = mcptask.TaskOptional
	}
	spec, err := newAdoptedSpec(entry, policy)
	if err != nil {
		return err
	}
	all := adoptedToolsOf(tasks.Backend())
	all.mu.Lock()
	defer all.mu.Unlock()
	if known := all.byName[spec.Name]; known != nil {
		if err := known.compare(entry, policy); err != nil {
			return fmt.Errorf("the tool %q is added a second time %w: add the same tool to each server, or give it another name", spec.Name, err)
		}
		return nil
	}
	tool := &adoptedTool{entry: bytes.Clone(entry), policy: policy}
	err = tasks.Register(mcptask.Tools{
		Service: spec.Name, Impl: tool, Fallback: mcptask.FallbackTools, Capabilities: mcptask.Declared(),
		Tools: []mcptask.Tool{{Spec: spec, Bind: bind}},
	})
	if err == nil {
		all.byName[spec.Name] = tool
	}
	return err
}

// newAdoptedSpec returns the spec of a tool. It has no schemas of its own, since the SDK has them.
func newAdoptedSpec(entry json.RawMessage, policy mcptask.Policy) (spec mcptask.ToolSpec, err error) {
	var listed struct {
		Name, Title, Description string
		Annotations              struct{ ReadOnlyHint, DestructiveHint, IdempotentHint, OpenWorldHint *bool }
	}
	if err := json.Unmarshal(entry, &listed); err != nil {
		return spec, fmt.Errorf("the entry of a tool is malformed: %w", err)
	}
	hints := listed.Annotations
	return mcptask.ToolSpec{
		Name: listed.Name, Title: listed.Title, Description: listed.Description, InputSchema: `{"type":"object"}`, Policy: policy,
		Annotations: mcptask.Annotations{
			ReadOnly: hints.ReadOnlyHint, Destructive: hints.DestructiveHint, Idempotent: hints.IdempotentHint, OpenWorld: hints.OpenWorldHint,
		},
	}, nil
}

// IsAdopted reports whether a tool was registered by [Adopt].
func IsAdopted(s *taskserver.Backend, tool string) bool {
	all := adoptedToolsOf(s)
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.byName[tool] != nil
}

// FallbackTools returns the fallback tools for the tasks of a tool. The adapter of an SDK registers them beside an adopted
// tool.
func FallbackTools(s *taskserver.Backend, tool string) []mcptask.ToolSpec {
	return fallback.ToolsFor(s, tool)
}

// WarnOnce logs a warning, once for the values of its attributes.
func WarnOnce(s *taskserver.Backend, text string, attrs ...any) {
	warned := s.Attached(warnedKey{}, func() any { return new(sync.Map) }).(*sync.Map)
	if _, known := warned.LoadOrStore(fmt.Sprint(append([]any{text}, attrs...)...), nil); !known {
		s.Logger().Warn(text, attrs...)
	}
}

type (
	adoptedKey struct{}
	warnedKey  struct{}
)

func adoptedToolsOf(s *taskserver.Backend) *adoptedTools {
	return s.Attached(adoptedKey{}, func() any { return &adoptedTools{byName: map[string]*adoptedTool{}} }).(*adoptedTools)
}

// adoptedTools has the adopted tools of a server.
type adoptedTools struct {
	mu     sync.Mutex
	byName map[string]*adoptedTool
}

// adoptedTool is a tool of an SDK, once for all its servers.
type adoptedTool struct {
	entry  json.RawMessage
	policy mcptask.Policy
}

// Adopted marks the handler as one of an SDK, which the server does not judge.
func (*adoptedTool) Adopted() {}

// compare returns an error that names the first difference from another registration.
func (t *adoptedTool) compare(entry json.RawMessage, policy mcptask.Policy) error {
	before, now := reflect.ValueOf(t.policy), reflect.ValueOf(policy)
	for i := range before.NumField() {
		if b, n := before.Field(i).Interface(), now.Field(i).Interface(); b != n {
			return fmt.Errorf("with the %s %v in its policy after %v", before.Type().Field(i).Name, n, b)
		}
	}
	var first, second map[string]json.RawMessage
	if err := json.Unmarshal(t.entry, &first); err != nil {
		return err
	}
	if err := json.Unmarshal(entry, &second); err != nil {
		return err
	}
	members := map[string]bool{}
	for name := range first {
		members[name] = true
	}
	for name := range second {
		members[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if a, b := first[name], second[name]; !bytes.Equal(a, b) {
			return fmt.Errorf("with the %s %s after %s", name, describeMember(b), describeMember(a))
		}
	}
	return nil
}

// describeMember shortens a member of an entry for an error.
func describeMember(data json.RawMessage) string {
	const most = 200
	switch {
	case data == nil:
		return "(none)"
	case len(data) > most:
		return string(bytes.ToValidUTF8(data[:most], nil)) + "…"
	}
	return string(data)
}
