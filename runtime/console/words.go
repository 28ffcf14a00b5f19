package console

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The states of a task, in the page's words.
const (
	stateWaiting   = "waiting"
	stateRunning   = "running"
	stateAsking    = "asking"
	stateCompleted = "completed"
	stateFailed    = "failed"
	stateCancelled = "cancelled"
	stateLost      = "lost"
)

// explanations tell of the page's words in those of the protocol.
var explanations = map[string]string{
	stateWaiting:   "in line for a free slot, for its first run or again after its worker was lost; working in the protocol",
	stateRunning:   "the handler runs; working in the protocol",
	stateAsking:    "the handler waits for an answer; input_required in the protocol",
	stateCompleted: "completed in the protocol, with a result",
	stateFailed:    "failed in the protocol with an error, or completed with a result that has isError",
	stateCancelled: "cancelled in the protocol",
	stateLost:      "the worker that runs it has no lease any more; working or input_required in the protocol",
	"late":         "the worker has not renewed its lease in time",
	"open":         "the question waits for an answer",
	"withdrawn":    "the handler no longer waits for an answer",
}

// stateOf names the state of a task.
func stateOf(r *taskstore.Record, isLost bool) string {
	switch {
	case r.Failed():
		return stateFailed
	case r.Outcome != nil && r.Outcome.Kind == taskstore.OutcomeResult:
		return stateCompleted
	case r.Outcome != nil:
		return string(r.Outcome.Kind)
	case isLost:
		return stateLost
	case r.Waits():
		return stateWaiting
	case r.Phase == taskstore.PhaseInputRequired:
		return stateAsking
	}
	return string(r.Phase)
}

// nameEnd names how a task has ended, of the text of a timeline.
func nameEnd(text string) string {
	switch text {
	case string(taskstore.OutcomeResult):
		return stateCompleted
	case string(taskstore.OutcomeError), "tool_error":
		return stateFailed
	}
	return text
}

// nameQuestion names the state of a question.
func nameQuestion(s taskstore.InputState) string {
	switch s {
	case taskstore.InputOutstanding:
		return "open"
	case taskstore.InputSuperseded:
		return "withdrawn"
	}
	return string(s)
}

// moment is an event of a timeline.
type moment struct {
	taskstore.Moment
	// Name is the event in a word, and More says more.
	Name, More string
	// Run is the number of its run if the task has several, or 0.
	Run int
}

// listMoments returns the timeline of a task, newest first.
func listMoments(r taskstore.Record) []moment {
	moments := r.Timeline.Moments()
	var all []moment
	for i, m := range moments {
		shown := moment{Moment: m, Name: cmp.Or(string(m.Kind), "unknown event"), More: m.Text}
		if r.Attempt > 1 {
			shown.Run = m.Attempt
		}
		switch m.Kind {
		case taskstore.EventEnded:
			shown.More = nameEnd(m.Text)
		case taskstore.EventLost:
			shown.More = cmp.Or(m.Text, "its worker") + " died or was cut off; " + describeAfterLoss(moments[i+1:])
		}
		all = append(all, shown)
	}
	slices.Reverse(all)
	return all
}

// describeAfterLoss says what has happened to a task after its worker was lost.
func describeAfterLoss(later []taskstore.Moment) string {
	for _, m := range later {
		switch m.Kind {
		case taskstore.EventStarted:
			return fmt.Sprintf("run %d has followed", m.Attempt)
		case taskstore.EventEnded:
			return "the task has ended as " + nameEnd(m.Text)
		}
	}
	return "another run is to follow"
}

// describeViewer says as whom the server sees a viewer, what the viewer can do, and what would let the viewer act.
func (c *Console) describeViewer(v Viewer) string {
	can := map[[2]bool]string{{true, true}: "step in and see hidden data", {true, false}: "step in", {false, true}: "see hidden data", {false, false}: "only look"}
	said := "Not signed in"
	if v.Name != "" && c.options.Authorize != nil {
		said = "Signed in as " + v.Name
	}
	said += ". You can " + can[[2]bool{v.Act, v.Reveal}] + "."
	switch {
	case v.Act:
	case !c.options.Actions:
		said += " To step in here, set Options.Actions in the program."
	default:
		said += " To step in, you need a name and Act from Options.Authorize."
	}
	return said
}

// functions are those of the templates.
func (c *Console) functions() template.FuncMap {
	return template.FuncMap{
		"reference": reference,
		"short":     func(r taskstore.Record) string { return beginningOf(r.ID) },
		"seal":      c.seal,
		"message":   func(r taskstore.Record) string { return text.Shorten(r.Report().Message, mostMessage) },
		"logID":     func(r taskstore.Record) string { return taskstore.LogID(r.Principal, r.ID) },
		"machine":   func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"human":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"viewer":    c.describeViewer,
		"duration":  formatDuration,
		"between":   func(from, until time.Time) string { return formatDuration(max(0, until.Sub(from))) },
		"size":      formatSize,
		"kind":      nameStepKind,
		"question":  nameQuestion,
		"worker":    taskserver.DescribeWorker,
		"explain":   func(word string) string { return explanations[word] },
		"progress":  func(r taskstore.Record) bool { return r.Progress.Total > 0 && !r.Done() },
		"number":    func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) },
	}
}

// formatDuration returns a duration as a person says it, such as 2 h 10 min.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	units := []struct {
		size time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.size {
			continue
		}
		said := fmt.Sprint(int64(d/u.size), " ", u.name)
		if i+1 < len(units) && d%u.size >= units[i+1].size {
			said += fmt.Sprint(" ", int64(d%u.size/units[i+1].size), " ", units[i+1].name)
		}
		return said
	}
	return fmt.Sprint(d.Milliseconds(), " ms")
}

// formatSize returns a number of bytes as a person says it.
func formatSize(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%d B", n)
	}
}

// nameStepKind says what the value of a step is.
func nameStepKind(kind taskstore.StepKind) string {
	switch kind {
	case taskstore.StepDone:
		return "result"
	case taskstore.StepPosition:
		return "saved position"
	case taskstore.StepSleep:
		return "end of a sleep"
	}
	return string(kind)
}
