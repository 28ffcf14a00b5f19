package chaos

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// attempt is one run of a handler.
type attempt struct {
	process string
	number  int
	start   time.Time
	// ended and cancelled are when the handler returned and saw the end of its context, or zero.
	ended, cancelled time.Time
	value            string
}

// attempts returns the runs of a task's handler, by their start.
func (t *taskHistory) attempts() []*attempt {
	var all []*attempt
	for _, r := range t.runs {
		if r.Moment == MomentStart {
			all = append(all, &attempt{process: r.Process, number: r.Attempt, start: r.At})
			continue
		}
		for _, a := range slices.Backward(all) {
			if a.process != r.Process || a.number != r.Attempt {
				continue
			}
			switch r.Moment {
			case MomentEnd:
				a.ended, a.value = r.At, r.Value
			case MomentCancelled:
				a.cancelled = r.At
			}
			break
		}
	}
	return all
}

// checkRuns checks that no handler runs twice that must not.
func (c *checker) checkRuns(t *taskHistory) {
	numbers := map[int]string{}
	for i, a := range t.attempts() {
		if i > 0 && !t.tool.restarts() {
			c.report(RuleOnce, t.id, "%s ran again as attempt %d in %s at %s", t.tool, a.number, a.process, clock(a.start))
		}
		if other, ok := numbers[a.number]; ok {
			c.report(RuleOnce, t.id, "attempt %d ran in %s, and at %s in %s", a.number, other, clock(a.start), a.process)
		}
		numbers[a.number] = a.process
	}
}

// checkResult checks that a run has returned the result before clients saw it.
func (c *checker) checkResult(t *taskHistory) {
	end := t.end()
	if end == nil || end.View.Status != StatusCompleted || end.View.Value == "" {
		return
	}
	for _, a := range t.attempts() {
		if a.value == end.View.Value && !a.ended.IsZero() && !a.ended.After(end.Returned) {
			return
		}
	}
	c.report(RuleResult, t.id, "no run has returned the result %q of %s", end.View.Value, clock(end.Returned))
}

// checkFinished checks that the value that a run has returned is the result. It passes over tasks that clients
// have cancelled, and runs whose process was disturbed until a while after their end: another run may have taken
// their place.
func (c *checker) checkFinished(t *taskHistory) {
	end := t.end()
	if end == nil || end.View.Value == "" {
		return
	}
	if slices.ContainsFunc(t.operations, func(o Operation) bool { return o.Action == ActionCancel && o.Reply != ReplyRefused }) {
		return
	}
	for _, a := range t.attempts() {
		if a.ended.IsZero() || a.value == end.View.Value || c.isDisturbed(a.process, a.start, a.ended.Add(CancelWithin)) {
			continue
		}
		c.report(RuleFinished, t.id, "%q was returned at %s, and the task is %s: %q", a.value, clock(a.ended), end.View.Status, end.View.Value)
	}
}

// isDisturbed reports whether a process was killed, stopped or late within a time, or killed before it.
func (c *checker) isDisturbed(process string, from, to time.Time) bool {
	stopped := false
	for _, d := range c.harms[process] {
		switch begin := d.At.Add(-d.For); {
		case d.Harm == HarmStarted:
		case begin.After(to):
			return stopped
		case d.Harm == HarmKilled || !d.At.Before(from):
			return true
		default:
			stopped = d.Harm == HarmStopped
		}
	}
	return stopped
}

// countLosses counts the harms that may cost runs their workers within a time.
func (c *checker) countLosses(from, to time.Time) (n int) {
	for _, harms := range c.harms {
		for _, d := range harms {
			if (d.Harm == HarmKilled || d.Harm == HarmStopped || d.Harm == HarmLate) && d.At.After(from) && d.At.Before(to) {
				n++
			}
		}
	}
	return n
}

// checkExplained checks that a task that was lost with its worker has lost it as often as it takes, that a task
// that was cancelled was so by a client, and that no task ends with another error.
func (c *checker) checkExplained(t *taskHistory) {
	end := t.end()
	if end == nil {
		return
	}
	switch {
	case end.View.Status == StatusCancelled:
		asked := func(o Operation) bool {
			return o.Action == ActionCancel && o.Reply != ReplyRefused && o.Called.Before(end.Returned)
		}
		if !slices.ContainsFunc(t.operations, asked) {
			c.report(RuleExplained, t.id, "cancelled at %s, and nobody has asked for it", clock(end.Returned))
		}
	case end.View.Status != StatusFailed || end.View.Value == "":
	case !strings.Contains(end.View.Value, LostMessage):
		c.report(RuleExplained, t.id, "failed at %s: %q", clock(end.Returned), end.View.Value)
	default:
		// A stop that began before the task may cost it its worker.
		const longest = 10 * time.Second
		need := 1
		if t.tool.restarts() {
			need = maxLosses
		}
		if n := c.countLosses(c.called[t.nonce].Add(-longest), end.Returned); n < need {
			c.report(RuleExplained, t.id, "lost with its worker at %s; that takes %d losses, and there were %d", clock(end.Returned), need, n)
		}
	}
}

// checkAnswers checks that all runs got the same answer to a question, which a client has given, and that an
// acknowledged answer closes its question.
func (c *checker) checkAnswers(t *taskHistory) {
	got := map[string]map[string]bool{} // values by step
	for _, r := range t.runs {
		if r.Moment == MomentAnswered {
			if got[r.Step] == nil {
				got[r.Step] = map[string]bool{}
			}
			got[r.Step][r.Value] = true
		}
	}
	given := map[string][]Operation{} // answers by step
	for _, o := range t.operations {
		if o.Action == ActionAnswer && o.Reply != ReplyRefused {
			given[o.Step] = append(given[o.Step], o)
		}
	}
	for step, values := range got {
		if len(values) > 1 {
			c.report(RuleAnswer, t.id, "the runs got the answers %q to %s", slices.Sorted(maps.Keys(values)), step)
		}
		for value := range values {
			i := slices.IndexFunc(given[step], func(o Operation) bool { return o.Value == value })
			if i < 0 {
				c.report(RuleAnswer, t.id, "a run got the answer %q to %s, which nobody has given", value, step)
				continue
			}
			for _, o := range given[step] {
				if c.closes(t, o) && o.Value != value && given[step][i].Called.After(o.Returned) {
					c.report(RuleAnswerKept, t.id, "the answer %q to %s was acknowledged at %s, and a run got %q, which was given later", o.Value, step, clock(o.Returned), value)
				}
			}
		}
	}
	for step, answers := range given {
		for _, o := range answers {
			if !c.closes(t, o) {
				continue
			}
			for _, later := range t.operations {
				if later.View != nil && later.Reply == ReplyOK && later.Called.After(o.Returned) && slices.Contains(later.View.Open, step) {
					c.report(RuleAnswerKept, t.id, "the answer %q to %s was acknowledged at %s, and the question was open at %s", o.Value, step, clock(o.Returned), clock(later.Called))
				}
			}
		}
	}
}

// closes reports whether an answer was acknowledged to a question that had been asked before the answer was given.
// A server ignores any other answer.
func (c *checker) closes(t *taskHistory, answer Operation) bool {
	if answer.Reply != ReplyOK {
		return false
	}
	return slices.ContainsFunc(t.operations, func(o Operation) bool {
		return o.View != nil && o.Returned.Before(answer.Called) && slices.Contains(o.View.Open, answer.Step)
	})
}

// checkCancel checks that each handler sees a cancellation in time, unless its process was disturbed, and that a
// cancellation that ends a task has ended it.
func (c *checker) checkCancel(t *taskHistory) {
	for _, o := range t.operations {
		if o.Action != ActionCancel || o.Reply != ReplyOK {
			continue
		}
		if o.View != nil && o.View.Status != StatusCancelled {
			c.report(RuleCancelHolds, t.id, "the cancellation of %s was acknowledged with the status %s", clock(o.Returned), o.View.Status)
		}
		for _, a := range t.attempts() {
			from := a.start
			if from.Before(o.Called) {
				from = o.Called
			}
			until := a.start
			if until.Before(o.Returned) {
				until = o.Returned
			}
			until = until.Add(CancelWithin)
			seen := a.cancelled
			if seen.IsZero() || !a.ended.IsZero() && a.ended.Before(seen) {
				seen = a.ended
			}
			if !seen.IsZero() && !seen.After(until) || c.isDisturbed(a.process, from, until) {
				continue
			}
			text := "never"
			if !seen.IsZero() {
				text = "at " + clock(seen)
			}
			c.report(RuleCancelSoon, t.id, "cancelled at %s; attempt %d in %s saw it %s", clock(o.Returned), a.number, a.process, text)
		}
	}
}
