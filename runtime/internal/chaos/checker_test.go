package chaos

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// at returns a time of a history: so many milliseconds after its begin.
func at(ms int) time.Time {
	return time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
}

// op returns an acknowledged operation on the task "t" from one time to another.
func op(action Action, called, returned int, view *View) Operation {
	return Operation{Client: "c", Principal: "p", Revision: "2026-07-28", Action: action, Called: at(called), Returned: at(returned),
		Reply: ReplyOK, Task: "t", View: view}
}

// create returns the create of a task.
func create(task, nonce, key string, tool Tool, called, returned int) Operation {
	o := op(ActionCreate, called, returned, &View{Status: StatusWorking})
	o.Task, o.Nonce, o.Key, o.Tool = task, nonce, key, tool
	return o
}

// answer returns an acknowledged answer to the question "s1".
func answer(value string, called, returned int) Operation {
	o := op(ActionAnswer, called, returned, nil)
	o.Step, o.Value = "s1", value
	return o
}

// list returns a list of tasks.
func list(called, returned int, tasks ...string) Operation {
	o := op(ActionList, called, returned, nil)
	o.Task, o.Listed = "", tasks
	return o
}

// unknown returns an operation whose answer was lost.
func unknown(o Operation) Operation {
	o.Reply, o.View = ReplyUnknown, nil
	if o.Action == ActionCreate {
		o.Task = ""
	}
	return o
}

// missing returns an operation that did not find its task.
func missing(o Operation) Operation {
	o.Reply, o.View = ReplyMissing, nil
	return o
}

// moment returns a moment of a run of the task "t" in the process "a".
func moment(ms int, tool Tool, attempt int, moment Moment, value string) Run {
	return Run{At: at(ms), Process: "a", Task: "t", Tool: tool, Nonce: "n", Attempt: attempt, Moment: moment, Value: value}
}

// in returns the moment in another process.
func in(process string, r Run) Run {
	r.Process = process
	return r
}

// answered returns the moment at which a run gets an answer to the question "s1".
func answered(ms, attempt int, value string) Run {
	r := moment(ms, ToolAsk, attempt, MomentAnswered, value)
	r.Step = "s1"
	return r
}

// harm returns a disturbance of the process "a".
func harm(ms int, what Harm) Disturbance { return Disturbance{At: at(ms), Process: "a", Harm: what} }

func view(status Status, value string) *View { return &View{Status: status, Value: value} }

// asking returns the view of a task whose question "s1" is open.
func asking() *View { return &View{Status: StatusAsking, Open: []string{"s1"}} }

// TestCheck checks that each rule finds its own breaches, and no others.
func TestCheck(t *testing.T) {
	const once, twice = "n of attempt 1 in a", "n of attempt 2 in b"
	begun := create("t", "n", "", ToolFail, 0, 10)
	restarting := create("t", "n", "", ToolRestart, 0, 10)
	run := []Run{moment(12, ToolFail, 1, MomentStart, ""), moment(50, ToolFail, 1, MomentEnd, once)}
	rerun := []Run{
		moment(12, ToolRestart, 1, MomentStart, ""), in("b", moment(60, ToolRestart, 2, MomentStart, "")),
		in("b", moment(70, ToolRestart, 2, MomentEnd, twice)),
	}
	completed := op(ActionRead, 80, 90, view(StatusCompleted, once))
	restarted := op(ActionRead, 80, 90, view(StatusCompleted, twice))
	cancelled := op(ActionRead, 5000, 5010, view(StatusCancelled, ""))
	cancel := op(ActionCancel, 20, 30, nil)
	asked := create("t", "n", "", ToolAsk, 0, 10)
	seen := op(ActionRead, 20, 25, asking())
	answeredRun := []Run{moment(12, ToolAsk, 1, MomentStart, ""), answered(45, 1, "yes"), moment(50, ToolAsk, 1, MomentEnd, once)}
	updated := func(ms int, o Operation) Operation {
		v := *o.View
		v.Updated = at(ms)
		o.View = &v
		return o
	}
	reported := func(attempt, step int, o Operation) Operation {
		o.View = &View{Status: StatusWorking, Message: FormatReport(attempt, step)}
		return o
	}
	lost := op(ActionRead, 15000, 15010, view(StatusFailed, "-32603 "+LostMessage))
	killed := []Disturbance{harm(40, HarmKilled)}
	for _, c := range []struct {
		name       string
		operations []Operation
		runs       []Run
		harms      []Disturbance
		want       []Rule
	}{
		{"a task's life", []Operation{begun, completed, list(100, 110, "t")}, run, nil, nil},
		{"a restart", []Operation{restarting, restarted}, rerun, killed, nil},

		{"two results", []Operation{restarting, restarted, op(ActionRead, 80, 90, view(StatusCompleted, once))},
			append(slices.Clone(rerun), moment(70, ToolRestart, 1, MomentEnd, once)), killed, []Rule{RuleOutcome}},
		{"two statuses", []Operation{begun, completed, cancel, op(ActionRead, 85, 95, view(StatusCancelled, ""))}, run, nil, []Rule{RuleOutcome}},
		{"a status without a value", []Operation{begun, op(ActionRead, 75, 76, view(StatusCompleted, "")), completed}, run, nil, nil},
		{"no end", []Operation{begun}, run, nil, []Rule{RuleEnded}},
		{"an end that is undone", []Operation{begun, completed, op(ActionRead, 91, 92, view(StatusWorking, ""))}, run, nil, []Rule{RuleFinal}},
		{"an end that is seen meanwhile", []Operation{begun, completed, op(ActionRead, 89, 92, view(StatusWorking, ""))}, run, nil, nil},
		{"an end with a question", []Operation{begun, completed, op(ActionRead, 80, 90, &View{Status: StatusCompleted, Value: once, Open: []string{"s1"}})},
			run, nil, []Rule{RuleFinal}},

		{"a task that is gone", []Operation{begun, missing(op(ActionRead, 11, 12, nil)), completed}, run, nil, []Rule{RuleKept}},
		{"a task that is not there yet", []Operation{begun, missing(op(ActionRead, 9, 12, nil)), completed}, run, nil, nil},
		{"a task that the list misses", []Operation{begun, completed, list(100, 110)}, run, nil, []Rule{RuleListed}},
		{"a task that the list may miss", []Operation{begun, completed, list(9, 110)}, run, nil, nil},
		{"a task that is listed twice", []Operation{begun, completed, list(100, 110, "t", "t")}, run, nil, []Rule{RuleListed}},
		{"a stranger in the list", []Operation{begun, completed, list(100, 110, "t", "u")}, run, nil, []Rule{RuleListed}},
		{"a task of a lost answer in the list", []Operation{begun, completed, unknown(create("", "m", "", ToolFail, 0, 10)), list(100, 110, "t", "u")}, run, nil, nil},

		{"a change that is undone", []Operation{begun, updated(40, op(ActionRead, 41, 42, view(StatusWorking, ""))),
			updated(30, op(ActionRead, 43, 44, view(StatusWorking, ""))), completed}, run, nil, []Rule{RuleForward}},
		{"a change that is seen meanwhile", []Operation{begun, updated(40, op(ActionRead, 41, 44, view(StatusWorking, ""))),
			updated(30, op(ActionRead, 43, 44, view(StatusWorking, ""))), completed}, run, nil, nil},
		{"a report that is undone", []Operation{begun, reported(1, 4, op(ActionRead, 41, 42, nil)), reported(1, 3, op(ActionRead, 43, 44, nil)), completed},
			run, nil, []Rule{RuleForward}},
		{"a report of the next attempt", []Operation{restarting, reported(1, 4, op(ActionRead, 41, 42, nil)), reported(2, 1, op(ActionRead, 63, 64, nil)), restarted},
			rerun, killed, nil},

		{"a key with two tasks", []Operation{create("t", "n", "k", ToolFail, 0, 10), create("u", "n", "k", ToolFail, 11, 12),
			completed}, run, nil, []Rule{RuleEnded, RuleKey}},
		{"a key with a lost answer", []Operation{unknown(create("t", "n", "k", ToolFail, 0, 5)), create("t", "n", "k", ToolFail, 6, 10), completed}, run, nil, nil},
		{"a key with other arguments", []Operation{create("t", "n", "k", ToolFail, 0, 10), create("t", "m", "k", ToolFail, 11, 12), completed},
			run, nil, []Rule{RuleKey, RuleKey}},
		{"a call that runs in two tasks", []Operation{begun, completed}, append(slices.Clone(run),
			Run{At: at(30), Process: "a", Task: "u", Tool: ToolFail, Nonce: "n", Attempt: 1, Moment: MomentStart}), nil, []Rule{RuleKey}},
		{"a call that nobody made", []Operation{begun, completed}, append(slices.Clone(run),
			Run{At: at(30), Process: "a", Task: "u", Tool: ToolFail, Nonce: "m", Attempt: 1, Moment: MomentStart}), nil, []Rule{RuleKey}},

		{"a second run", []Operation{begun, completed}, append(slices.Clone(run), in("b", moment(60, ToolFail, 2, MomentStart, ""))), killed, []Rule{RuleOnce}},
		{"an attempt that runs twice", []Operation{restarting, restarted}, append(slices.Clone(rerun), in("c", moment(65, ToolRestart, 2, MomentStart, ""))),
			killed, []Rule{RuleOnce}},
		{"a result of no run", []Operation{begun, completed}, run[:1], nil, []Rule{RuleResult}},
		{"a result before its run", []Operation{begun, op(ActionRead, 30, 40, view(StatusCompleted, once))}, run, nil, []Rule{RuleResult}},
		{"a run whose result is lost", []Operation{begun, lost}, run, []Disturbance{harm(12000, HarmKilled)}, []Rule{RuleFinished}},
		{"a run that dies with its result", []Operation{begun, lost}, run, []Disturbance{harm(51, HarmKilled)}, nil},
		{"a task that is lost without a reason", []Operation{begun, lost}, run[:1], nil, []Rule{RuleExplained}},
		{"a task that is lost with its worker", []Operation{begun, lost}, run[:1], killed, nil},
		{"a task that restarts and is lost too soon", []Operation{restarting, lost}, rerun[:1], killed, []Rule{RuleExplained}},
		{"an end that nobody asked for", []Operation{begun, cancelled}, run[:1], nil, []Rule{RuleExplained}},
		{"another error", []Operation{begun, op(ActionRead, 80, 90, view(StatusFailed, "-32603 oh"))}, run[:1], nil, []Rule{RuleExplained}},

		{"an answer", []Operation{asked, seen, answer("yes", 30, 40), completed}, answeredRun, nil, nil},
		{"an answer that nobody gave", []Operation{asked, seen, answer("no", 30, 40), completed}, answeredRun, nil, []Rule{RuleAnswer}},
		{"two answers to two runs", []Operation{asked, seen, answer("yes", 30, 40), answer("no", 30, 40), completed},
			append(slices.Clone(answeredRun), answered(46, 1, "no")), nil, []Rule{RuleAnswer}},
		{"an answer that is replaced", []Operation{asked, seen, answer("no", 30, 35), answer("yes", 36, 40), completed}, answeredRun, nil, []Rule{RuleAnswerKept}},
		{"two answers at once", []Operation{asked, seen, answer("no", 30, 37), answer("yes", 36, 40), completed}, answeredRun, nil, nil},
		{"an answer whose reply is lost", []Operation{asked, seen, unknown(answer("no", 30, 35)), answer("yes", 36, 40), completed}, answeredRun, nil, nil},
		{"an answer before the question", []Operation{asked, answer("no", 11, 12), seen, answer("yes", 36, 40), completed}, answeredRun, nil, nil},
		{"an answer that is forgotten", []Operation{asked, seen, answer("yes", 30, 40), op(ActionRead, 41, 42, asking()), completed}, answeredRun, nil, []Rule{RuleAnswerKept}},

		{"a cancellation", []Operation{begun, cancel, cancelled}, append(slices.Clone(run[:1]), moment(10000, ToolFail, 1, MomentCancelled, "")), nil, nil},
		{"a cancellation that is seen late", []Operation{begun, cancel, cancelled}, append(slices.Clone(run[:1]), moment(10040, ToolFail, 1, MomentCancelled, "")),
			nil, []Rule{RuleCancelSoon}},
		{"a cancellation that is never seen", []Operation{begun, cancel, cancelled}, run[:1], nil, []Rule{RuleCancelSoon}},
		{"a cancellation of a dead process", []Operation{begun, cancel, cancelled}, run[:1], []Disturbance{harm(19, HarmKilled)}, nil},
		{"a cancellation of a process that stops", []Operation{begun, cancel, cancelled}, run[:1], []Disturbance{harm(1500, HarmStopped)}, nil},
		{"a cancellation of a stopped process", []Operation{begun, cancel, cancelled}, run[:1], []Disturbance{harm(15, HarmStopped), harm(3000, HarmContinued)}, nil},
		{"a cancellation of a process that went on", []Operation{begun, cancel, cancelled}, run[:1],
			[]Disturbance{harm(13, HarmStopped), harm(15, HarmContinued)}, []Rule{RuleCancelSoon}},
		{"a cancellation of a late process", []Operation{begun, cancel, cancelled}, run[:1],
			[]Disturbance{{At: at(2500), Process: "a", Harm: HarmLate, For: time.Second}}, nil},
		{"a run that starts after its cancellation", []Operation{restarting, cancel, cancelled}, rerun[:2], append(slices.Clone(killed), Disturbance{at(10100), "b", HarmKilled, 0}),
			[]Rule{RuleCancelSoon}},
		{"a cancellation that does not end the task", []Operation{begun, op(ActionCancel, 20, 30, view(StatusWorking, "")), cancelled},
			append(slices.Clone(run[:1]), moment(35, ToolFail, 1, MomentCancelled, "")), nil, []Rule{RuleCancelHolds}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &History{Operations: c.operations, Runs: c.runs, Processes: c.harms}
			found := Check(h)
			var rules []Rule
			for _, f := range found {
				rules = append(rules, f.Rule)
			}
			if !slices.Equal(rules, c.want) {
				t.Errorf("%q, want %q:\n%v\n%s", rules, c.want, found, h.Explain("t"))
			}
		})
	}
}

// TestJournal checks that a journal keeps its lines in order, and that a torn last line costs only itself.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	run, late := moment(1, ToolAsk, 1, MomentStart, ""), harm(2, HarmLate)
	for _, l := range []Line{{Run: &run}, {Disturbance: &late}} {
		if err := j.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.file.WriteString(`{"Run":{"Ta`); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var h History
	if err := h.ReadJournal(path); err != nil || !slices.Equal(h.Runs, []Run{run}) || !slices.Equal(h.Processes, []Disturbance{late}) {
		t.Errorf("%+v, %v", h, err)
	}
	if text := h.Explain("t"); !strings.Contains(text, "attempt 1: start") || !strings.Contains(text, "a: late") {
		t.Error(text)
	}
}
