package taskserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// savePause is the time between two writes of positions. A position may be that old after a crash.
const savePause = 100 * time.Millisecond

// runSteps has the steps of a task, as its run knows them. The run is the only one that writes them: a write of another
// run gets a conflict.
type runSteps struct {
	isRead atomic.Bool // whether those of earlier runs were read

	mu     sync.Mutex
	stored map[string]taskstore.Step // without the results that the handler has got
	total  int64                     // bytes of the stored ones
	saved  map[string]taskstore.Step // positions that are not stored yet
	bytes  int64                     // of all, without the positions that others replace
	isDue  bool                      // whether a timer is going to store the saved positions
	last   time.Time                 // when they were stored last
	failed error                     // why they could not be stored; for the next Save
}

// find returns a step.
func (s *runSteps) find(name string) (taskstore.Step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step, ok := s.saved[name]
	if !ok {
		step, ok = s.stored[name]
	}
	return step, ok
}

// add counts a step that is about to be stored, and keeps a position until then. It returns by how many bytes the task's
// steps grow, and false if they would have more than most bytes.
func (s *runSteps) add(step *taskstore.Step, most int) (more int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	former, ok := s.saved[step.Name]
	if !ok {
		former, ok = s.stored[step.Name]
	}
	if more = step.Size(); ok {
		more -= former.Size()
	}
	if more > 0 && s.bytes+more > int64(most) {
		return 0, false
	}
	s.bytes += more
	if step.Kind == taskstore.StepPosition {
		if s.saved == nil {
			s.saved = map[string]taskstore.Step{}
		}
		s.saved[step.Name] = *step
	}
	return more, true
}

// drop undoes add.
func (s *runSteps) drop(more int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= more
}

// take returns the positions that are not stored yet, and the step with them unless it is nil. total is how many bytes
// all stored steps have then: a write that is made again does not count them twice.
func (s *runSteps) take(step *taskstore.Step) (steps []taskstore.Step, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, saved := range s.saved {
		steps = append(steps, saved)
	}
	if len(steps) > 0 {
		s.last = time.Now()
	}
	if step != nil {
		steps = append(steps, *step)
	}
	total = s.total
	for i := range steps {
		total += s.growth(&steps[i])
	}
	return steps, total
}

// growth returns by how many bytes a step makes the stored ones grow. s.mu is held.
func (s *runSteps) growth(step *taskstore.Step) int64 {
	if former, ok := s.stored[step.Name]; ok {
		return step.Size() - former.Size()
	}
	return step.Size()
}

// keep notes that steps are stored.
func (s *runSteps) keep(steps []taskstore.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored == nil {
		s.stored = map[string]taskstore.Step{}
	}
	s.failed = nil // the saved positions were among them, or are stored later
	for _, step := range steps {
		s.total += s.growth(&step)
		s.stored[step.Name] = step
		if saved, ok := s.saved[step.Name]; ok && bytes.Equal(saved.Value, step.Value) { // otherwise it was saved again
			delete(s.saved, step.Name)
		}
	}
}

// dropResult frees the memory of a result that the handler has got: a run gets each once.
func (s *runSteps) dropResult(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := s.stored[name]
	step.Value = nil
	s.stored[name] = step
}

// readSteps reads the steps of earlier runs, once.
func (h *taskHost) readSteps(ctx context.Context) error {
	s := &h.steps
	if h.record.Attempt == 1 || s.isRead.Load() {
		return nil
	}
	if err := h.takeTurn(ctx); err != nil {
		return err
	}
	defer h.giveTurn()
	if s.isRead.Load() {
		return nil
	}
	b := h.backend
	steps, err := callStore(ctx, b.newTaskRetry(), "Steps", func(ctx context.Context) ([]taskstore.Step, error) {
		return b.store.Steps(ctx, h.record.ID)
	})
	if err != nil {
		return err
	}
	s.keep(steps)
	s.mu.Lock()
	s.bytes = s.total
	s.mu.Unlock()
	s.isRead.Store(true)
	return nil
}

// findStep returns a step that an earlier run has stored, or that this run has.
func (h *taskHost) findStep(ctx context.Context, name string, kind taskstore.StepKind) (json.RawMessage, bool, error) {
	if err := h.readSteps(ctx); err != nil {
		return nil, false, h.explainUnstored(ctx, name, err)
	}
	step, ok := h.steps.find(name)
	if ok && step.Kind != kind {
		return nil, false, fmt.Errorf("step %q: the task has stored it by %s, and this call is %s: give them different names", name, nameCall(step.Kind), nameCall(kind))
	}
	if !ok && kind != taskstore.StepPosition && ctx.Err() != nil { // the work would be for nothing
		return nil, false, context.Cause(ctx)
	}
	return step.Value, ok, nil
}

// nameCall returns the function that stores steps of a kind.
func nameCall(kind taskstore.StepKind) string {
	return map[taskstore.StepKind]string{taskstore.StepDone: "Step", taskstore.StepPosition: "Save", taskstore.StepSleep: "Sleep"}[kind]
}

// RunStep implements mcptask.StepHost.
func (h *taskHost) RunStep(ctx context.Context, key string, f func(context.Context) (json.RawMessage, error)) (value json.RawMessage, err error) {
	defer func() {
		if err == nil {
			h.steps.dropResult(key)
		}
	}()
	if value, ok, err := h.findStep(ctx, key, taskstore.StepDone); ok || err != nil {
		return value, err
	}
	ctx, end := h.backend.hookStep(ctx, StepInfo{Task: h.record, Name: key, Kind: taskstore.StepDone})
	defer func() { err = end(err) }()
	if err = context.Cause(ctx); err != nil {
		return nil, err
	}
	err = errNoReturn
	if value, err = f(ctx); err != nil {
		return nil, err
	}
	err = h.storeStep(ctx, taskstore.Step{Name: key, Kind: taskstore.StepDone, Value: value})
	return value, err
}

// Sleep implements mcptask.StepHost.
func (h *taskHost) Sleep(ctx context.Context, key string, d time.Duration) (err error) {
	value, ok, err := h.findStep(ctx, key, taskstore.StepSleep)
	if err != nil {
		return err
	}
	until := h.backend.SureNow().Add(d)
	if ok {
		if err := json.Unmarshal(value, &until); err != nil {
			return fmt.Errorf("step %q: its stored time cannot be read: %w", key, err)
		}
	} else {
		if value, err = json.Marshal(until.UTC()); err != nil {
			return fmt.Errorf("step %q: %w", key, err)
		}
		if err := h.storeStep(ctx, taskstore.Step{Name: key, Kind: taskstore.StepSleep, Value: value}); err != nil {
			return err
		}
	}
	if ok && !until.After(h.backend.SureNow()) { // it ended before this run, which keeps its slot
		return nil
	}
	ctx, end := h.backend.hookStep(ctx, StepInfo{Task: h.record, Name: key, Kind: taskstore.StepSleep})
	defer func() { err = end(err) }()
	defer h.LeaveSlot()()
	timer := time.NewTimer(until.Sub(h.backend.SureNow()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Load implements mcptask.StepHost.
func (h *taskHost) Load(ctx context.Context, name string) (json.RawMessage, bool, error) {
	return h.findStep(ctx, name, taskstore.StepPosition)
}

// Save implements mcptask.StepHost. Positions are stored at most every savePause, the newest of each. When the server
// closes, the last ones are handed over.
func (h *taskHost) Save(ctx context.Context, name string, value json.RawMessage) error {
	if _, _, err := h.findStep(ctx, name, taskstore.StepPosition); err != nil {
		return err
	}
	step := taskstore.Step{Name: name, Kind: taskstore.StepPosition, Value: value}
	if _, err := h.admitStep(ctx, &step); err != nil {
		return err
	}
	s := &h.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	h.scheduleSave()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := s.failed
	s.failed = nil
	return err
}

// scheduleSave stores the saved positions when it is their time. runSteps.mu is held.
func (h *taskHost) scheduleSave() {
	s := &h.steps
	if s.isDue {
		return
	}
	s.isDue = true
	time.AfterFunc(savePause-time.Since(s.last), func() {
		defer guard.Recover(h.backend.logger, "storing of a position")
		err := h.storeNews(h.backend.drained, h.backend.newTaskRetry(), nil)
		if err != nil {
			err = h.explainUnstored(h.attempt, "a position", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch s.isDue = false; {
		case len(s.saved) == 0: // a step may have taken them along
		case err == nil: // saved meanwhile
			h.scheduleSave()
		default:
			s.failed = err
		}
	})
}

// storeStep stores a step before it returns. Finished work counts even if the context has ended meanwhile.
func (h *taskHost) storeStep(ctx context.Context, step taskstore.Step) error {
	more, err := h.admitStep(ctx, &step)
	if err != nil {
		return err
	}
	if err := h.storeNews(withValuesOf(ctx, h.backend.drained), h.backend.newTaskRetry(), &step); err != nil {
		h.steps.drop(more)
		return h.explainUnstored(ctx, step.Name, err)
	}
	return nil
}

// admitStep counts a step, and returns by how many bytes the task's steps grow. It refuses a step that is too big, or
// that the task has no room for.
func (h *taskHost) admitStep(ctx context.Context, step *taskstore.Step) (more int64, err error) {
	b := h.backend
	refuse := func(name string, most int) (int64, error) {
		return 0, b.Limited(ctx, callerOf(&h.record), name, most, "task", taskstore.LogID(h.record.Principal, h.record.ID), "tool", h.record.Tool, "step", step.Name)
	}
	if most := b.options.Limits.Step; len(step.Value) > most {
		return refuse("step", most)
	}
	more, ok := h.steps.add(step, b.options.Limits.Steps)
	if !ok {
		return refuse("steps", b.options.Limits.Steps)
	}
	return more, nil
}

// describeStep returns the status message of a task whose handler has reported nothing, when a step is stored. It
// reports a finished step because no write marks the beginning of the next one.
func describeStep(step *taskstore.Step) string {
	var until time.Time
	if step.Kind == taskstore.StepSleep && json.Unmarshal(step.Value, &until) == nil {
		return fmt.Sprintf("The sleep %q ends at %s UTC.", step.Name, until.UTC().Format(time.DateTime))
	}
	return fmt.Sprintf("The step %q is done.", step.Name)
}
