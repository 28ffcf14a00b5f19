package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// overview is the data of the first page.
type overview struct {
	Path  string
	Tools []toolCounts
	Total toolCounts
	// NeverTasks are the tools that never run as tasks.
	NeverTasks []string
	Ends       ends
	Workers    []worker
	Open       []openQuestion
	Stale      []stale
}

// stale is how many tasks of a tool do not fit the server, and why.
type stale struct {
	Tool, Why string
	Count     int
}

// listStale lists the tasks that do not fit the server, by tool.
func (c *Console) listStale() (all []stale) {
	found := c.server.StaleTasks()
	for tool, n := range found.Unserved {
		all = append(all, stale{tool, "no server is known to have the tool", n})
	}
	for tool, n := range found.Changed {
		all = append(all, stale{tool, "their arguments do not fit its declaration of now", n})
	}
	slices.SortFunc(all, func(a, b stale) int { return cmp.Compare(a.Tool, b.Tool) })
	return all
}

// failuresFor is the time in which failures count.
const failuresFor = time.Hour

// toolCounts counts the unfinished tasks of a tool by state, and those that failed in failuresFor.
type toolCounts struct {
	Tool                                   string
	Waiting, Running, Asking, Lost, Failed int
}

// HasMoreFailed reports whether more tasks may have failed than are counted.
func (t toolCounts) HasMoreFailed() bool { return t.Failed >= taskstore.MaxCountFailed }

// add counts tasks, by the state that a list shows.
func (t *toolCounts) add(c taskstore.Count, workers []worker) {
	r := taskstore.Record{Phase: c.Phase, Claim: taskstore.Claim{Worker: c.Worker}}
	switch {
	case r.Done(): // as CountFailed counts
		t.Failed += c.Count
	case isLost(c.Phase, c.Worker, workers):
		t.Lost += c.Count
	case r.Waits():
		t.Waiting += c.Count
	case c.Phase == taskstore.PhaseInputRequired:
		t.Asking += c.Count
	default:
		t.Running += c.Count
	}
}

// openQuestion is a question that waits for an answer.
type openQuestion struct {
	Task taskstore.Record
	Key  string
	// Message is the text of the question.
	Message string
	// Since is when it was asked.
	Since time.Time
}

// readOverview reads the data of the first page.
func (c *Console) readOverview(ctx context.Context) (overview, error) {
	o := overview{Path: c.options.Path, Ends: newEnds(c.server.EndsPerMinute(), time.Since(c.began)), Stale: c.listStale()}
	ctx, done, err := c.beginRead(ctx)
	if err != nil {
		return o, err
	}
	defer done()
	counts, err := c.inspector.CountUnfinished(ctx)
	if err != nil {
		return o, err
	}
	failed, err := c.inspector.CountFailed(ctx, c.server.Backend().Now().Add(-failuresFor))
	if err != nil {
		return o, err
	}
	if o.Workers, err = c.listWorkers(ctx, 0); err != nil { // after the counts, which have no worker that is newer
		return o, err
	}
	o.countTools(c.server.Backend().Tools(), append(counts, failed...))
	o.Open, err = c.readOpen(ctx)
	return o, err
}

// countTools adds the tools with the counts of their tasks. Stored tasks may be of tools that the server does not have.
func (o *overview) countTools(tools []mcptask.ToolSpec, counts []taskstore.Count) {
	byTool := map[string]*toolCounts{}
	for _, count := range counts {
		if byTool[count.Tool] == nil {
			byTool[count.Tool] = &toolCounts{Tool: count.Tool}
		}
		byTool[count.Tool].add(count, o.Workers)
		o.Total.add(count, o.Workers)
	}
	for _, tool := range tools {
		switch {
		case byTool[tool.Name] != nil:
		case tool.Policy.Task == mcptask.TaskForbidden:
			o.NeverTasks = append(o.NeverTasks, tool.Name)
		default:
			byTool[tool.Name] = &toolCounts{Tool: tool.Name}
		}
	}
	for _, t := range byTool {
		o.Tools = append(o.Tools, *t)
	}
	slices.SortFunc(o.Tools, func(a, b toolCounts) int { return cmp.Compare(a.Tool, b.Tool) })
	slices.Sort(o.NeverTasks)
}

// readOpen returns the oldest open questions, among those of the oldest tasks that ask.
func (c *Console) readOpen(ctx context.Context) ([]openQuestion, error) {
	asking, err := c.inspector.Scan(ctx, taskstore.Filter{Phase: taskstore.PhaseInputRequired, OldestFirst: true}, taskstore.Position{}, scanAsking)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(asking, func(a, b taskstore.Record) int { return firstAsked(a).Compare(firstAsked(b)) })
	var all []openQuestion
	for _, r := range asking[:min(len(asking), mostOpen)] {
		whole, err := c.readTask(ctx, r.ID) // a scan may leave the questions out
		if errors.Is(err, errNoTask) || errors.Is(err, errUnreadable) {
			continue
		} else if err != nil {
			return nil, err
		}
		for _, in := range whole.Inputs {
			if in.State == taskstore.InputOutstanding {
				all = append(all, openQuestion{whole, in.Key, text.Shorten(messageOf(in), mostMessage), askedAt(whole, in.Key)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b openQuestion) int { return a.Since.Compare(b.Since) })
	return all[:min(len(all), mostOpen)], nil
}

// openQuestions returns the keys of the questions that wait, with when they were asked, as far as the timeline tells:
// it has only the beginning of a long key, and the last moments. The end of a task withdraws its questions, and is no
// moment of theirs.
func openQuestions(r taskstore.Record) []taskstore.Moment {
	if r.Done() {
		return nil
	}
	var open []taskstore.Moment
	for _, m := range r.Timeline.Moments() {
		switch m.Kind {
		case taskstore.EventAsked:
			open = append(open, m)
		case taskstore.EventAnswered, taskstore.EventWithdrawn:
			open = slices.DeleteFunc(open, func(asked taskstore.Moment) bool { return asked.Text == m.Text })
		}
	}
	return open
}

// firstAsked returns since when a task has asked.
func firstAsked(r taskstore.Record) time.Time {
	if open := openQuestions(r); len(open) > 0 {
		return open[0].At
	}
	return r.UpdatedAt
}

// askedAt returns when a question was asked.
func askedAt(r taskstore.Record, key string) time.Time {
	for _, m := range openQuestions(r) {
		if m.Text == key || len(key) > taskstore.MaxMomentText && strings.HasPrefix(key, m.Text) {
			return m.At
		}
	}
	return r.UpdatedAt
}

// ends is how many tasks have ended in the last minutes.
type ends struct {
	Total, Most int // in all, and in one minute
	// Since is how long this process has counted, if that is less than the time of the chart, or "".
	Since string
	Bars  []bar
}

// bar is a bar of the chart of ends.
type bar struct{ X, Y, Height, Count, Ago int }

// chartHeight is the height of the chart of ends.
const chartHeight = 40

func newEnds(minutes []int, counted time.Duration) ends {
	e := ends{Most: slices.Max(minutes)}
	if minute := counted.Truncate(time.Minute); minute < time.Duration(len(minutes))*time.Minute {
		e.Since = fmt.Sprint(max(1, int(minute/time.Minute)), " min")
	}
	scale := max(1, e.Most)
	for i, n := range minutes {
		e.Total += n
		height := (n*chartHeight + scale - 1) / scale
		e.Bars = append(e.Bars, bar{X: i * 4, Y: chartHeight - height, Height: height, Count: n, Ago: len(minutes) - 1 - i})
	}
	return e
}

var overviewParts = []string{"totals", "stale", "tools", "open", "workers"}

func (c *Console) showOverview(w http.ResponseWriter, r request) error {
	o, err := c.readOverview(r.Context())
	if err != nil {
		return err
	}
	return c.write(w, http.StatusOK, "overview.html", page{Title: "Overview", View: "overview", Viewer: r.viewer, Data: o})
}
