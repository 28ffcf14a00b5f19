package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// CancelWithin is how soon a handler sees that its task was cancelled, and a result is stored. It tells what comes late, as on
// the overloaded machine of a test, from what never comes.
const CancelWithin = 10 * time.Second

// maxLosses is how many runs of a task may lose their worker: mcptask.DefaultAttempts.
const maxLosses = 5

// Rule names a promise.
type Rule string

// The rules.
const (
	RuleOutcome     Rule = "one outcome"           // all who see the end of a task see the same
	RuleFinal       Rule = "no change at the end"  // after the end nobody sees the task unfinished
	RuleEnded       Rule = "every task ends"       // somebody has seen the end of each task
	RuleKept        Rule = "kept"                  // a task that was acknowledged is there
	RuleListed      Rule = "listed once"           // and in the list, which has no others
	RuleForward     Rule = "no way back"           // no change that was seen is undone
	RuleKey         Rule = "idempotency"           // one call, or one key, is one task
	RuleOnce        Rule = "no second run"         // of onlost=fail, and of an attempt
	RuleResult      Rule = "the result of a run"   // a run has returned each result
	RuleFinished    Rule = "finished work counts"  // the value that a run returns becomes the result
	RuleExplained   Rule = "explained end"         // a task is lost or cancelled for a reason
	RuleAnswer      Rule = "answered once"         // all runs get the same answer, which a client gave
	RuleAnswerKept  Rule = "answers are kept"      // an acknowledged answer closes its question
	RuleCancelSoon  Rule = "cancel within seconds" // see CancelWithin
	RuleCancelHolds Rule = "cancel holds"          // an acknowledged cancel of 2025-11-25 is the end
)

// Fault is a promise that a history shows as broken.
type Fault struct {
	Rule Rule
	// Task is the task's ID, or "".
	Task string
	Text string
}

// String describes the fault.
func (f Fault) String() string {
	if f.Task == "" {
		return fmt.Sprintf("%s: %s", f.Rule, f.Text)
	}
	return fmt.Sprintf("%s: task %s: %s", f.Rule, f.Task, f.Text)
}

// taskHistory is the part of a history that is about one task.
type taskHistory struct {
	id         string
	tool       Tool
	nonce      string
	operations []Operation // by their return
	runs       []Run       // by time
}

// checker has a history in the order that the rules need.
type checker struct {
	history *History
	tasks   map[string]*taskHistory
	harms   map[string][]Disturbance // by process
	called  map[string]time.Time     // the first call of a create, by nonce
	faults  []Fault
}

// Check compares a history with the promises. It returns the faults, ordered by rule and task.
func Check(h *History) []Fault {
	c := newChecker(h)
	for _, t := range c.tasks {
		c.checkOutcome(t)
		c.checkKept(t)
		c.checkForward(t)
		c.checkRuns(t)
		c.checkResult(t)
		c.checkFinished(t)
		c.checkExplained(t)
		c.checkAnswers(t)
		c.checkCancel(t)
	}
	c.checkKeys()
	c.checkLists()
	slices.SortFunc(c.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(c.faults)
}

func newChecker(h *History) *checker {
	c := &checker{history: h, tasks: map[string]*taskHistory{}, harms: map[string][]Disturbance{}, called: map[string]time.Time{}}
	for _, d := range slices.SortedStableFunc(slices.Values(h.Processes), func(a, b Disturbance) int { return a.At.Compare(b.At) }) {
		c.harms[d.Process] = append(c.harms[d.Process], d)
	}
	for _, o := range h.Operations {
		if first, ok := c.called[o.Nonce]; o.Action == ActionCreate && (!ok || o.Called.Before(first)) {
			c.called[o.Nonce] = o.Called
		}
		if o.Task != "" {
			t := c.findTask(o.Task)
			t.operations = append(t.operations, o)
			if o.Action == ActionCreate {
				t.tool, t.nonce = o.Tool, o.Nonce
			}
		}
	}
	for _, r := range h.Runs {
		t := c.findTask(r.Task)
		t.runs = append(t.runs, r)
		t.tool, t.nonce = r.Tool, r.Nonce
	}
	for _, t := range c.tasks {
		slices.SortStableFunc(t.operations, func(a, b Operation) int { return a.Returned.Compare(b.Returned) })
		slices.SortStableFunc(t.runs, func(a, b Run) int { return a.At.Compare(b.At) })
	}
	return c
}

func (c *checker) findTask(id string) *taskHistory {
	t := c.tasks[id]
	if t == nil {
		t = &taskHistory{id: id}
		c.tasks[id] = t
	}
	return t
}

func (c *checker) report(rule Rule, task, format string, args ...any) {
	c.faults = append(c.faults, Fault{rule, task, fmt.Sprintf(format, args...)})
}

// views returns the operations that have shown the task's state, by their return.
func (t *taskHistory) views() []Operation {
	return slices.DeleteFunc(slices.Clone(t.operations), func(o Operation) bool { return o.Reply != ReplyOK || o.View == nil })
}

// end returns the first view of the task's end that has its value if any has, or nil.
func (t *taskHistory) end() *Operation {
	var found *Operation
	for _, o := range t.views() {
		if o.View.Status.isFinal() && (found == nil || found.View.Value == "" && o.View.Value != "") {
			found = &o
		}
	}
	return found
}

// checkOutcome checks that all ends that were seen are the same, and that nobody sees the task
// unfinished after an end was seen.
func (c *checker) checkOutcome(t *taskHistory) {
	end := t.end()
	if end == nil {
		if slices.ContainsFunc(t.operations, func(o Operation) bool { return o.Reply == ReplyOK }) {
			c.report(RuleEnded, t.id, "nobody has seen its end")
		}
		return
	}
	first := *end // the earliest return of any end
	for _, o := range t.views() {
		if !o.View.Status.isFinal() {
			continue
		}
		if o.Returned.Before(first.Returned) {
			first = o
		}
		if o.View.Status != end.View.Status || o.View.Value != "" && o.View.Value != end.View.Value {
			c.report(RuleOutcome, t.id, "%s %q, and at %s %s %q", end.View.Status, end.View.Value, clock(o.Returned), o.View.Status, o.View.Value)
		}
		if len(o.View.Open) > 0 {
			c.report(RuleFinal, t.id, "it has ended with the open questions %q", o.View.Open)
		}
	}
	for _, o := range t.views() {
		if !o.View.Status.isFinal() && o.Called.After(first.Returned) {
			c.report(RuleFinal, t.id, "%s at %s, after it was %s at %s", o.View.Status, clock(o.Called), first.View.Status, clock(first.Returned))
		}
	}
}

// checkKept checks that a task is there once a client knows it.
func (c *checker) checkKept(t *taskHistory) {
	var known time.Time
	for _, o := range t.operations {
		if o.Reply == ReplyOK && (known.IsZero() || o.Returned.Before(known)) {
			known = o.Returned
		}
	}
	if known.IsZero() {
		return
	}
	for _, o := range t.operations {
		if o.Reply == ReplyMissing && o.Called.After(known) {
			c.report(RuleKept, t.id, "missing at %s, and acknowledged at %s: %s", clock(o.Returned), clock(known), o.Error)
		}
	}
}

// checkForward checks that a view shows no older state than a view that came back before it was asked
// for. A task that was never seen to change passes.
func (c *checker) checkForward(t *taskHistory) {
	views := t.views()
	byCall := slices.Clone(views)
	slices.SortStableFunc(byCall, func(a, b Operation) int { return a.Called.Compare(b.Called) })
	var newest time.Time // of all views that have returned
	var furthest [2]int
	next := 0
	for _, o := range byCall {
		for ; next < len(views) && views[next].Returned.Before(o.Called); next++ {
			if v := views[next].View; v.Updated.After(newest) {
				newest = v.Updated
			}
			if step := parseReport(views[next].View.Message); slices.Compare(step[:], furthest[:]) > 0 {
				furthest = step
			}
		}
		if updated := o.View.Updated; !updated.IsZero() && updated.Before(newest) {
			c.report(RuleForward, t.id, "changed last at %s, as seen at %s, after a change of %s was seen", clock(updated), clock(o.Called), clock(newest))
		}
		if step := parseReport(o.View.Message); step != [2]int{} && slices.Compare(step[:], furthest[:]) < 0 {
			c.report(RuleForward, t.id, "at attempt and step %d, as seen at %s, after %d was seen", step, clock(o.Called), furthest)
		}
	}
}

// FormatReport returns the status message of a step of an attempt.
func FormatReport(attempt, step int) string { return fmt.Sprintf("attempt %d, step %d", attempt, step) }

// parseReport returns the attempt and the step of a status message, or zeros for any other message.
func parseReport(message string) (report [2]int) {
	if n, err := fmt.Sscanf(message, "attempt %d, step %d", &report[0], &report[1]); err != nil || n != 2 {
		return [2]int{}
	}
	return report
}

// checkKeys checks that the calls with one nonce have made one task, that one key has one nonce, and that a
// task has one nonce.
func (c *checker) checkKeys() {
	tasks, nonces, keys := map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]bool{}
	add := func(m map[string]map[string]bool, key, value string) {
		if m[key] == nil {
			m[key] = map[string]bool{}
		}
		m[key][value] = true
	}
	sent := map[string]bool{}
	for _, o := range c.history.Operations {
		if o.Action != ActionCreate {
			continue
		}
		sent[o.Nonce] = true
		if o.Reply != ReplyOK {
			continue
		}
		add(tasks, o.Nonce, o.Task)
		add(nonces, o.Task, o.Nonce)
		if o.Key != "" {
			add(keys, fmt.Sprintf("%s, %s, %s", o.Principal, o.Tool, o.Key), o.Nonce)
		}
	}
	for _, r := range c.history.Runs {
		add(tasks, r.Nonce, r.Task)
		add(nonces, r.Task, r.Nonce)
		if !sent[r.Nonce] {
			c.report(RuleKey, r.Task, "its handler ran with the nonce %q, which nobody sent", r.Nonce)
		}
	}
	for nonce, all := range tasks {
		if len(all) > 1 {
			list := slices.Sorted(maps.Keys(all))
			c.report(RuleKey, list[0], "the calls with the nonce %s have made the tasks %s", nonce, strings.Join(list, ", "))
		}
	}
	for task, all := range nonces {
		if len(all) > 1 {
			c.report(RuleKey, task, "it is of the calls with the nonces %s", strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
	}
	for key, all := range keys {
		if len(all) > 1 {
			c.report(RuleKey, "", "the key %s was taken for the nonces %s", key, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
	}
}

// checkLists checks that a list has each task of the principal that was acknowledged before the call, each
// once, and no more tasks than could have been made.
func (c *checker) checkLists() {
	unknown := map[string]int{} // creates without an acknowledgement, by principal
	made := map[string]map[string]time.Time{}
	for _, o := range c.history.Operations {
		switch {
		case o.Action != ActionCreate:
		case o.Reply == ReplyUnknown:
			unknown[o.Principal]++
		case o.Reply == ReplyOK:
			if made[o.Principal] == nil {
				made[o.Principal] = map[string]time.Time{}
			}
			if at, ok := made[o.Principal][o.Task]; !ok || o.Returned.Before(at) {
				made[o.Principal][o.Task] = o.Returned
			}
		}
	}
	for _, o := range c.history.Operations {
		if o.Action != ActionList || o.Reply != ReplyOK {
			continue
		}
		listed, strangers := map[string]bool{}, 0
		for _, id := range o.Listed {
			if listed[id] {
				c.report(RuleListed, id, "it is twice in the list of %s", clock(o.Returned))
			}
			listed[id] = true
			if _, ok := made[o.Principal][id]; !ok {
				strangers++
			}
		}
		if strangers > unknown[o.Principal] {
			c.report(RuleListed, "", "the list of %s of %s has %d tasks that nobody knows, and %d calls may have made them",
				clock(o.Returned), o.Principal, strangers, unknown[o.Principal])
		}
		for id, at := range made[o.Principal] {
			if at.Before(o.Called) && !listed[id] {
				c.report(RuleListed, id, "it is not in the list of %s, and was acknowledged at %s", clock(o.Called), clock(at))
			}
		}
	}
}
