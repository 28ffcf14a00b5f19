package mcptasktest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// RunStep implements mcptask.StepHost.
func (h *scriptedHost) RunStep(ctx context.Context, key string, f func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	value, ok, err := h.findStep(ctx, key, taskstore.StepDone)
	if ok || err != nil {
		return value, err
	}
	if value, err = f(ctx); err == nil {
		h.keepStep(taskstore.Step{Name: key, Kind: taskstore.StepDone, Value: value})
	}
	return value, err
}

// Save implements mcptask.StepHost.
func (h *scriptedHost) Save(ctx context.Context, name string, value json.RawMessage) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, _, err := h.findStep(ctx, name, taskstore.StepPosition)
	if err == nil {
		h.keepStep(taskstore.Step{Name: name, Kind: taskstore.StepPosition, Value: value})
	}
	return err
}

// Load implements mcptask.StepHost.
func (h *scriptedHost) Load(ctx context.Context, name string) (json.RawMessage, bool, error) {
	return h.findStep(ctx, name, taskstore.StepPosition)
}

// Sleep implements mcptask.StepHost.
func (h *scriptedHost) Sleep(ctx context.Context, key string, d time.Duration) error {
	h.t.Helper()
	_, _, err := h.findStep(ctx, key, taskstore.StepSleep)
	if err == nil {
		h.keepStep(taskstore.Step{Name: key, Kind: taskstore.StepSleep})
		h.t.Logf("sleep %s for %s", key, d)
	}
	return err
}

// findStep returns the value of a step that is stored, or that a script has for it. Its errors are those of a server.
func (h *scriptedHost) findStep(ctx context.Context, name string, kind taskstore.StepKind) (json.RawMessage, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if quoted := fmt.Sprintf("%q", name); !slices.Contains(h.steps, quoted) {
		h.steps = append(h.steps, quoted)
	}
	step, ok := h.stored[name]
	if i := slices.IndexFunc(h.scripts, func(s Script) bool { return s.step == name && s.isStored }); i >= 0 && kind != taskstore.StepSleep {
		s := h.scripts[i]
		value, err := s.response()
		if err != nil {
			return nil, false, fmt.Errorf("%s: the value cannot be stored as JSON: %w", s.code, err)
		}
		h.scripts = slices.Delete(h.scripts, i, i+1)
		step, ok = taskstore.Step{Name: name, Kind: kind, Value: value}, true
		h.stored[name] = step
	}
	if !ok && ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	return step.Value, ok, nil
}

// keepStep stores a step.
func (h *scriptedHost) keepStep(step taskstore.Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored[step.Name] = step
}
