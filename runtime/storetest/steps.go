package storetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// newStep returns a step that was stored some microseconds after the epoch.
func (k *kit) newStep(name, value string, micros int) taskstore.Step {
	return taskstore.Step{Name: name, Kind: taskstore.StepDone, Value: json.RawMessage(value), At: k.epoch.Add(time.Duration(micros) * time.Microsecond), Attempt: 1}
}

// updateSteps stores the next version of a record, with steps.
func (k *kit) updateSteps(r taskstore.Record, steps ...taskstore.Step) taskstore.Record {
	k.Helper()
	stored, err := k.s.Update(k.ctx, r, r, taskstore.Quota{}, steps...)
	if err != nil {
		k.Fatalf("update %q with %d steps: %v", r.ID, len(steps), err)
	}
	return stored
}

// wantSteps checks the steps of a task, in their order, with both handles.
func (k *kit) wantSteps(what, id string, want ...taskstore.Step) {
	k.Helper()
	for _, s := range []taskstore.Store{k.s, k.other} {
		got, err := s.Steps(k.ctx, id)
		k.wantError(what+": the steps of "+id, err, nil)
		if d := diffRecords(got, want); d != "" {
			k.Errorf("%s: the steps of %q: %s", what, id, d)
		}
		if inspector, ok := s.(taskstore.Inspector); ok {
			got, err := inspector.ListSteps(k.ctx, id)
			k.wantError(what+": the list of steps of "+id, err, nil)
			slices.SortFunc(got, func(a, b taskstore.StepSummary) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name)) })
			if d := diffRecords(got, taskstore.SummarizeSteps(want)); d != "" {
				k.Errorf("%s: the list of steps of %q: %s", what, id, d)
			}
		}
	}
}

// wantNoSteps checks that Steps finds no record.
func (k *kit) wantNoSteps(what, id string) {
	k.Helper()
	for _, s := range []taskstore.Store{k.s, k.other} {
		got, err := s.Steps(k.ctx, id)
		k.wantError("the steps of "+what, err, taskstore.ErrNoRecord)
		if len(got) > 0 {
			k.Errorf("%s has %d steps", what, len(got))
		}
		if inspector, ok := s.(taskstore.Inspector); ok {
			_, err := inspector.ListSteps(k.ctx, id)
			k.wantError("the list of steps of "+what, err, taskstore.ErrNoRecord)
		}
	}
}

func testSteps(k *kit) {
	k.wantNoSteps("a missing record", "t")
	r := k.createRecord(k.newRecord("t", "p", k.epoch))
	k.wantSteps("a new record", "t")
	other := k.createRecord(k.newRecord("other", "p", k.epoch))
	other = k.updateSteps(other, k.newStep("b", `"other"`, 0))

	// In the order of their times, not of their names or of their updates.
	a, b, c := k.newStep("a", ` {"n": 1.0, "<": "\u003c"} `, 2), k.newStep("b", "1", 2), k.newStep("c", "2", 1)
	given := []taskstore.Step{b, c}
	r = k.updateSteps(r, given...)
	given[0].Name, given[1].Value = "scribble", nil
	r = k.updateSteps(r, a)
	k.wantSteps("two updates", "t", c, a, b)
	k.wantSteps("another record", "other", k.newStep("b", `"other"`, 0))
	r = k.updateSteps(r)
	k.wantSteps("an update without steps", "t", c, a, b)

	// A step replaces the one with its name, also within an update.
	moved := k.newStep("c", "[3]", 3)
	moved.Kind, moved.Attempt = taskstore.StepPosition, 2
	r = k.updateSteps(r, k.newStep("c", "[2]", 4), moved)
	k.wantSteps("replaced", "t", a, b, moved)

	// Bytes and times are exact.
	every := everyByte()
	odd := k.newStep(every, `"`+every+`"`, 5)
	odd.Kind += taskstore.StepKind(every)
	odd.Attempt = 1 << 40
	early := k.newStep("", "null", 0)
	early.At = time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)
	huge := k.newStep("huge\x00", `"`+strings.Repeat("ä", 1<<20)+`"`, 6)
	long := k.newStep("huge", strings.Repeat("x", 2<<20), 7)
	r = k.updateSteps(r, odd, huge, early, long)
	k.wantSteps("exact", "t", early, a, b, moved, odd, huge, long)

	k.checkRefusedSteps(r)
	k.wantSteps("after refused updates", "t", early, a, b, moved, odd, huge, long)
	ended := k.updateRecord(r, finishRecord(r))
	k.wantSteps("after the end", "t", early, a, b, moved, odd, huge, long)

	// They go with their record.
	k.deleteRecord("t")
	k.wantNoSteps("a deleted record", "t")
	_, err := k.s.Update(k.ctx, ended, ended, taskstore.Quota{}, a)
	k.wantError("steps of a deleted record", err, taskstore.ErrNoRecord)
	other.ExpiresAt = k.minutesAfter(-1)
	k.updateRecord(k.getRecord("other"), other)
	k.expireRecords(5, 1)
	k.wantNoSteps("an expired record", "other")
	for _, id := range []string{"t", "other"} {
		k.createRecord(k.newRecord(id, "p", k.epoch))
		k.wantSteps("a new record with the ID", id)
	}
}

// checkRefusedSteps checks that updates which must fail store no steps.
func (k *kit) checkRefusedSteps(r taskstore.Record) {
	k.Helper()
	step := k.newStep("refused", "1", 8)
	for _, version := range []int64{-1, 1} {
		from := r
		from.Version += version
		_, err := k.other.Update(k.ctx, from, r, taskstore.Quota{}, step)
		k.wantError("steps of another version", err, taskstore.ErrConflict)
	}
	grown := r
	grown.StepBytes += step.Size()
	_, err := k.s.Update(k.ctx, r, grown, taskstore.Quota{Account: taskstore.Usage{Bytes: 1}}, step)
	k.wantQuotaError("steps beyond the quota", err, taskstore.ScopeAccount, taskstore.ErrQuotaBytes)
	missing := k.newRecord("missing", "p", k.epoch)
	missing.Version = 1
	_, err = k.s.Update(k.ctx, missing, missing, taskstore.Quota{}, step)
	k.wantError("steps of a missing record", err, taskstore.ErrNoRecord)
	k.wantNoSteps("a missing record after an update", "missing")
}

// testStepsAgain repeats updates with steps, as a caller does that has not got the answer.
func testStepsAgain(k *kit) {
	first := k.createRecord(k.newRecord("t", "p", k.epoch))
	change := first
	change.Nonce = "n1"
	step, again := k.newStep("a", "1", 1), k.newStep("a", "2", 2)
	second, err := k.s.Update(k.ctx, first, change, taskstore.Quota{}, step)
	k.wantError("an update with a step", err, nil)
	got, err := k.other.Update(k.ctx, first, change, taskstore.Quota{}, again)
	k.wantError("the same again", err, nil)
	k.wantRecord("updated again", got, second)
	k.wantSteps("updated again", "t", step)
	k.updateRecord(second, second)
	_, err = k.other.Update(k.ctx, first, change, taskstore.Quota{}, again)
	k.wantError("again, too late", err, taskstore.ErrConflict)
	k.wantSteps("again, too late", "t", step)

	const writers, writes = 4, 10
	faults := Faults{Refuse: 0.2, Lose: 0.3}
	stores := []*Faulty{NewFaulty(k.s, faults, 1), NewFaulty(k.other, faults, 2)}
	runConcurrently(writers, func(i int) {
		r := k.createRecord(k.newRecord(fmt.Sprint("t", i), "p", k.epoch))
		var want []taskstore.Step
		for n := range writes {
			to, step := r, k.newStep(fmt.Sprint("step ", n), fmt.Sprint(i), n)
			to.Nonce, to.StepBytes = fmt.Sprint(i, " ", n), r.StepBytes+step.Size()
			err := ErrFault
			for errors.Is(err, ErrFault) {
				var next taskstore.Record
				if next, err = stores[i%2].Update(k.ctx, r, to, taskstore.Quota{}, step); err == nil {
					r = next
				}
			}
			k.wantError("a write again", err, nil)
			want = append(want, step)
		}
		k.wantSteps("lost answers", r.ID, want...)
	})
}

// testStepsRace has many updates of one version, each with steps. Only those of the winner are stored.
func testStepsRace(k *kit) {
	const rounds, writers = 12, 16
	k.createRecord(k.newRecord("t", "p", k.epoch))
	var want []taskstore.Step
	for round := range rounds {
		current := k.getRecord("t")
		var winner atomic.Pointer[[]taskstore.Step]
		runConcurrently(writers, func(i int) {
			steps := []taskstore.Step{
				k.newStep("position", fmt.Sprintf("[%d,%d]", i, round), rounds), k.newStep(fmt.Sprint("of ", i, " in round ", round), fmt.Sprint(i), round),
			}
			if _, err := k.pickStore(i).Update(k.ctx, current, current, taskstore.Quota{}, steps...); err == nil {
				winner.Store(&steps)
			} else {
				k.wantError("an update that lost", err, taskstore.ErrConflict)
			}
		})
		steps := winner.Load()
		if steps == nil {
			k.Fatalf("no update won")
		}
		want = append(want, (*steps)[1])
		k.wantSteps("after a race", "t", append(slices.Clone(want), (*steps)[0])...)
	}
}
