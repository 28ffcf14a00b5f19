package proof

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// moment is a point that a run of a handler has reached.
type moment string

const (
	momentStart     moment = "start"
	momentAnswered  moment = "answered"  // a question, whose Step it is
	momentEnd       moment = "end"       // with the value that becomes the result
	momentCancelled moment = "cancelled" // the handler has seen the end of its context
)

// line is a line of the journal, in which handlers record their actions, apart from the store.
type line struct {
	At      time.Time
	Process string
	Task    string
	Tool    string
	Attempt int
	Moment  moment
	Step    string `json:",omitempty"`
	Value   string `json:",omitempty"`
	Cause   string `json:",omitempty"` // of the end of the context
}

// readJournal reads the lines of all processes. No kill tears a line, since each is written by one call.
func readJournal(t *testing.T, path string) (lines []line) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			t.Fatalf("%s: %q: %v", path, scanner.Bytes(), err)
		}
		lines = append(lines, l)
	}
	return lines
}

// end is how a task has ended. Two ends are equal if all who see them see the same.
type end struct {
	Kind  taskstore.OutcomeKind
	Value string // the result's text, or the error's data
}

// endOf returns the end of a record, or nil before it.
func endOf(r taskstore.Record) *end {
	if !r.Done() {
		return nil
	}
	e := &end{Kind: r.Outcome.Kind}
	switch e.Kind {
	case taskstore.OutcomeResult:
		var result struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(r.Outcome.Result, &result); err != nil || len(result.Content) != 1 {
			e.Value = string(r.Outcome.Result)
			break
		}
		e.Value = result.Content[0].Text
	case taskstore.OutcomeError:
		e.Value = string(r.Outcome.Error.Data)
	}
	return e
}

// taskHistory has the test's actions on a task and its observations.
type taskHistory struct {
	id, tool string
	// seen are the ends that the server's feed has told.
	seen []end
	// last is the end that the store has when all is over. nil means that there is none.
	last *end
	// cancelled is when the server took the cancellation, or zero.
	cancelled time.Time
}

// history is all that is known of a run of the test.
type history struct {
	tasks  []*taskHistory
	lines  []line
	killed map[string]time.Time // by process
}

// figures sum up a history.
type figures struct {
	tasks, kills, starts          int
	completed, lost, cancelled    int
	lostIdle, lostAlive           int // lost without a start, and without a kill
	again                         int // starts beyond a task's first
	cutByKill, seen, neverStarted int // runs of cancelled tasks, and such tasks without a run
	slowest                       time.Duration
}

func (f figures) String() string {
	return fmt.Sprintf("%d kills, %d tasks: %d completed, %d lost under fail (%d before their start, %d without a kill), %d cancelled; "+
		"%d runs, %d of them again; of cancelled tasks %d runs saw it, after %v at most, %d were killed before, and %d tasks had no run",
		f.kills, f.tasks, f.completed, f.lost, f.lostIdle, f.lostAlive, f.cancelled,
		f.starts, f.again, f.seen, f.slowest.Round(time.Millisecond), f.cutByKill, f.neverStarted)
}

// restarts reports whether a tool may run again.
func restarts(tool string) bool { return !strings.HasSuffix(tool, "_fail") }

// check compares a history with the promises. It returns those that are broken.
func (h *history) check() (f figures, faults []string) {
	f = figures{tasks: len(h.tasks), kills: len(h.killed)}
	byTask := map[string][]line{}
	for _, l := range h.lines {
		byTask[l.Task] = append(byTask[l.Task], l)
	}
	for _, t := range h.tasks {
		report := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("task %s of %s: ", t.id, t.tool)+fmt.Sprintf(format, args...))
		}
		lines := byTask[t.id]
		slices.SortStableFunc(lines, func(a, b line) int { return a.At.Compare(b.At) })
		delete(byTask, t.id)
		h.checkRuns(t, lines, &f, report)
		h.checkEnd(t, lines, &f, report)
	}
	for id := range byTask {
		faults = append(faults, fmt.Sprintf("task %s has run, and nobody has created it", id))
	}
	return f, faults
}

// checkRuns checks that no handler starts that must not, that each ends or is killed, and that all runs get the same
// answers.
func (h *history) checkRuns(t *taskHistory, lines []line, f *figures, report func(string, ...any)) {
	attempts, answers := map[int]string{}, map[string]string{}
	starts := 0
	for i, l := range lines {
		switch l.Moment {
		case momentStart:
			f.starts++
			if starts++; starts > 1 {
				f.again++
				if !restarts(t.tool) {
					report("started again, as attempt %d in %s", l.Attempt, l.Process)
				}
			}
			if other, ok := attempts[l.Attempt]; ok {
				report("attempt %d started in %s and in %s", l.Attempt, other, l.Process)
			}
			attempts[l.Attempt] = l.Process
			h.checkRunEnd(t, l, lines[i+1:], f, report)
		case momentAnswered:
			if other, ok := answers[l.Step]; ok && other != l.Value {
				report("the question %s was answered with %q, and with %q", l.Step, other, l.Value)
			}
			answers[l.Step] = l.Value
		}
	}
	if !t.cancelled.IsZero() && starts == 0 {
		f.neverStarted++
	}
}

// checkRunEnd checks the end of one run. That of a cancelled task has to see that.
func (h *history) checkRunEnd(t *taskHistory, start line, later []line, f *figures, report func(string, ...any)) {
	i := slices.IndexFunc(later, func(l line) bool {
		return l.Process == start.Process && l.Attempt == start.Attempt && (l.Moment == momentEnd || l.Moment == momentCancelled)
	})
	_, killed := h.killed[start.Process]
	switch {
	case i < 0 && !killed:
		report("attempt %d in %s has not ended, and nobody has killed its process", start.Attempt, start.Process)
	case t.cancelled.IsZero():
	case i < 0:
		f.cutByKill++
	case later[i].Moment == momentCancelled && later[i].At.After(t.cancelled):
		f.seen++
		f.slowest = max(f.slowest, later[i].At.Sub(t.cancelled))
	}
}

// checkEnd checks that a task has ended, once, and as its runs and its cancellation say.
func (h *history) checkEnd(t *taskHistory, lines []line, f *figures, report func(string, ...any)) {
	if t.last == nil {
		report("has not ended")
		return
	}
	for _, e := range t.seen {
		if e != *t.last {
			report("was seen as %v, and is %v", e, *t.last)
		}
	}
	if isCancelled := t.last.Kind == taskstore.OutcomeCancelled; isCancelled == t.cancelled.IsZero() {
		report("ended as %v, and the cancellation was taken at %v", *t.last, t.cancelled)
	}
	switch t.last.Kind {
	case taskstore.OutcomeCancelled:
		f.cancelled++
	case taskstore.OutcomeResult:
		f.completed++
		if !slices.ContainsFunc(lines, func(l line) bool { return l.Moment == momentEnd && l.Value == t.last.Value }) {
			report("no run has returned its result %q", t.last.Value)
		}
	default:
		f.lost++
		if restarts(t.tool) || !strings.Contains(t.last.Value, "worker_lost") {
			report("failed with %s", t.last.Value)
		}
		start := slices.IndexFunc(lines, func(l line) bool { return l.Moment == momentStart })
		if start < 0 {
			f.lostIdle++
		} else if _, killed := h.killed[lines[start].Process]; !killed {
			f.lostAlive++
		}
	}
}

// TestCheck checks that each fault of a history is found.
func TestCheck(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	cancelled, lost := end{Kind: taskstore.OutcomeCancelled}, end{taskstore.OutcomeError, `{"reason":"worker_lost"}`}
	result := func(value string) end { return end{taskstore.OutcomeResult, value} }
	start := func(second, attempt int, process string) line {
		return line{At: at(second), Task: "a", Moment: momentStart, Attempt: attempt, Process: process}
	}
	stop := func(second, attempt int, process string, m moment, value string) line {
		return line{At: at(second), Task: "a", Moment: m, Attempt: attempt, Process: process, Value: value}
	}
	answer := func(second, attempt int, process, value string) line {
		l := stop(second, attempt, process, momentAnswered, value)
		l.Step = "s"
		return l
	}
	for name, c := range map[string]struct {
		tool      string
		last      *end
		seen      []end
		cancelled int // at which second
		lines     []line
		want      string
	}{
		"completed":        {tool: "work", last: new(result("v")), seen: []end{result("v")}, lines: []line{start(1, 1, "p"), stop(2, 1, "p", momentEnd, "v")}},
		"restarted":        {tool: "work", last: new(result("v")), lines: []line{start(1, 1, "dead"), start(2, 2, "p"), stop(3, 2, "p", momentEnd, "v")}},
		"lost":             {tool: "work_fail", last: &lost, lines: []line{start(1, 1, "dead")}},
		"cancelled":        {tool: "work", last: &cancelled, cancelled: 2, lines: []line{start(1, 1, "p"), stop(3, 1, "p", momentCancelled, "")}},
		"cancelled, dead":  {tool: "work", last: &cancelled, cancelled: 2, lines: []line{start(1, 1, "dead")}},
		"never ended":      {tool: "work", want: "has not ended"},
		"two ends":         {tool: "work", last: new(result("v")), seen: []end{cancelled}, lines: []line{start(1, 1, "p"), stop(2, 1, "p", momentEnd, "v")}, want: "was seen as"},
		"ran twice":        {tool: "work_fail", last: new(result("v")), lines: []line{start(1, 1, "dead"), start(2, 2, "p"), stop(3, 2, "p", momentEnd, "v")}, want: "started again"},
		"one attempt":      {tool: "work", last: new(result("v")), lines: []line{start(1, 1, "dead"), start(2, 1, "p"), stop(3, 1, "p", momentEnd, "v")}, want: "attempt 1 started in"},
		"invented":         {tool: "work", last: new(result("w")), lines: []line{start(1, 1, "p"), stop(2, 1, "p", momentEnd, "v")}, want: "no run has returned"},
		"lost in restart":  {tool: "work", last: &lost, lines: []line{start(1, 1, "dead")}, want: "failed with"},
		"runs on":          {tool: "work", last: &cancelled, cancelled: 2, lines: []line{start(1, 1, "p")}, want: "has not ended, and nobody"},
		"cancel undone":    {tool: "work", last: new(result("v")), cancelled: 2, lines: []line{start(1, 1, "p"), stop(3, 1, "p", momentEnd, "v")}, want: "ended as"},
		"cancelled itself": {tool: "work", last: &cancelled, lines: []line{start(1, 1, "p"), stop(3, 1, "p", momentCancelled, "")}, want: "ended as"},
		"two answers": {tool: "work", last: new(result("v")), lines: []line{start(1, 1, "dead"), answer(2, 1, "dead", "x"),
			start(3, 2, "p"), answer(4, 2, "p", "y"), stop(5, 2, "p", momentEnd, "v")}, want: "answered with"},
	} {
		t.Run(name, func(t *testing.T) {
			task := &taskHistory{id: "a", tool: c.tool, last: c.last, seen: c.seen}
			if c.cancelled > 0 {
				task.cancelled = at(c.cancelled)
			}
			h := &history{tasks: []*taskHistory{task}, lines: c.lines, killed: map[string]time.Time{"dead": at(9)}}
			_, faults := h.check()
			if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)) {
				t.Errorf("the faults are %q, and not %q", faults, c.want)
			}
		})
	}
	if _, faults := (&history{lines: []line{start(1, 1, "p")}}).check(); len(faults) != 1 {
		t.Errorf("a task that nobody created: %q", faults)
	}
}
