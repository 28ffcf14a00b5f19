package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	"github.com/mcptaskgen/mcptaskgen/internal/indent"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// page is the data for each template of a whole page.
type page struct {
	Title string
	Path  string
	// View is the view that the page shows, for the stream of its changes. "" means that it has none.
	View   string
	Viewer Viewer
	Data   any
}

// The bounds of a page.
const (
	pageSize     = 50
	mostWaiting  = 10
	scanWaiting  = 200      // the oldest tasks that ask; see Console.readWaiting
	mostShown    = 64 << 10 // bytes of a revealed text
	mostSteps    = 200      // on the page of a task
	mostMessage  = 300      // bytes of a message in a list
	maxReads     = 2        // overviews and lists at once
	readsWithin  = 10 * time.Second
	waitsWithin  = 30 * time.Second // for a place among maxReads
	answerLength = 1 << 20
)

// beginRead waits for one of maxReads places, and returns a context that ends after readsWithin. done frees the place.
// So pages cannot keep the store from those who call tools. The page of one task needs no place.
func (c *Console) beginRead(ctx context.Context) (_ context.Context, done func(), err error) {
	select {
	case c.reads <- struct{}{}:
	case <-ctx.Done():
		return ctx, nil, ctx.Err()
	case <-time.After(waitsWithin):
		return ctx, nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	return ctx, func() { <-c.reads; cancel() }, nil
}

// errBusy says that other pages have kept a page from reading the store.
var errBusy = failure{http.StatusServiceUnavailable, "other pages search the store: try again later"}

// write writes a page. If it returns an error, nothing is written.
func (c *Console) write(w http.ResponseWriter, status int, name string, p page) error {
	var b bytes.Buffer
	p.Path = c.options.Path
	if err := c.templates.ExecuteTemplate(&b, name, p); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who has left needs no answer
	return nil
}

// fragments are parts of a page, by the IDs of their elements.
type fragments map[string]string

// render returns parts of a page.
func (c *Console) render(data any, names ...string) (fragments, error) {
	parts := fragments{}
	for _, name := range names {
		var b bytes.Buffer
		if err := c.templates.ExecuteTemplate(&b, name, data); err != nil {
			return nil, err
		}
		parts[name] = b.String()
	}
	return parts, nil
}

// overview is the data of the first page.
type overview struct {
	Path    string
	Tools   []toolCounts
	Total   toolCounts
	Ends    ends
	Workers []taskstore.WorkerLease
	Waiting []waiting
	Stale   []stale
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

// toolCounts counts the unfinished tasks of a tool.
type toolCounts struct {
	Tool                   string
	Queued, Running, Asked int
}

// add counts tasks.
func (t *toolCounts) add(c taskstore.Count) {
	switch c.Phase {
	case taskstore.PhaseQueued:
		t.Queued += c.Count
	case taskstore.PhaseRunning:
		t.Running += c.Count
	case taskstore.PhaseInputRequired:
		t.Asked += c.Count
	}
}

// waiting is a question that waits.
type waiting struct {
	Task taskstore.Record
	Key  string
	// Message is the text of the question.
	Message string
	// Since is when it was asked.
	Since time.Time
}

// readOverview reads the data of the first page.
func (c *Console) readOverview(ctx context.Context) (overview, error) {
	o := overview{Path: c.options.Path, Ends: newEnds(c.server.EndsPerMinute()), Stale: c.listStale()}
	ctx, done, err := c.beginRead(ctx)
	if err != nil {
		return o, err
	}
	defer done()
	counts, err := c.inspector.CountUnfinished(ctx)
	if err != nil {
		return o, err
	}
	byTool := map[string]*toolCounts{}
	for _, tool := range c.server.Backend().Tools() {
		byTool[tool.Name] = &toolCounts{Tool: tool.Name}
	}
	for _, count := range counts {
		if byTool[count.Tool] == nil {
			byTool[count.Tool] = &toolCounts{Tool: count.Tool}
		}
		byTool[count.Tool].add(count)
		o.Total.add(count)
	}
	for _, t := range byTool {
		o.Tools = append(o.Tools, *t)
	}
	slices.SortFunc(o.Tools, func(a, b toolCounts) int { return cmp.Compare(a.Tool, b.Tool) })
	if o.Workers, err = c.inspector.Workers(ctx); err != nil {
		return o, err
	}
	// A server that looks for the tasks of lost workers has a lease for those that it finds, under its name and a
	// number.
	o.Workers = slices.DeleteFunc(o.Workers, func(w taskstore.WorkerLease) bool { return w.Unfinished == 0 && strings.Contains(w.Worker, "/") })
	slices.SortFunc(o.Workers, func(a, b taskstore.WorkerLease) int {
		return cmp.Or(cmp.Compare(b.Unfinished, a.Unfinished), cmp.Compare(a.Worker, b.Worker))
	})
	o.Waiting, err = c.readWaiting(ctx)
	return o, err
}

// readWaiting returns the questions that wait longest, among those of the oldest tasks that ask.
func (c *Console) readWaiting(ctx context.Context) ([]waiting, error) {
	asking, err := c.inspector.Scan(ctx, taskstore.Filter{Phase: taskstore.PhaseInputRequired, OldestFirst: true}, taskstore.Position{}, scanWaiting)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(asking, func(a, b taskstore.Record) int { return firstAsked(a).Compare(firstAsked(b)) })
	var all []waiting
	for _, r := range asking[:min(len(asking), mostWaiting)] {
		whole, err := c.readTask(ctx, r.ID) // a scan may leave the questions out
		if errors.Is(err, errNoTask) || errors.Is(err, errUnreadable) {
			continue
		} else if err != nil {
			return nil, err
		}
		for _, in := range whole.Inputs {
			if in.State == taskstore.InputOutstanding {
				all = append(all, waiting{whole, in.Key, text.Shorten(messageOf(in), mostMessage), askedAt(whole, in.Key)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b waiting) int { return a.Since.Compare(b.Since) })
	return all[:min(len(all), mostWaiting)], nil
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
	Bars        []bar
}

// bar is a bar of the chart of ends.
type bar struct{ X, Y, Height, Count, Ago int }

// chartHeight is the height of the chart of ends.
const chartHeight = 40

func newEnds(minutes []int) ends {
	e := ends{Most: slices.Max(minutes)}
	scale := max(1, e.Most)
	for i, n := range minutes {
		e.Total += n
		height := (n*chartHeight + scale - 1) / scale
		e.Bars = append(e.Bars, bar{X: i * 4, Y: chartHeight - height, Height: height, Count: n, Ago: len(minutes) - 1 - i})
	}
	return e
}

var overviewParts = []string{"totals", "stale", "tools", "waiting", "workers"}

func (c *Console) showOverview(w http.ResponseWriter, r request) error {
	o, err := c.readOverview(r.Context())
	if err != nil {
		return err
	}
	return c.write(w, http.StatusOK, "overview.html", page{Title: "Overview", View: "overview", Viewer: r.viewer, Data: o})
}

// reference returns the name of a task in a URL: its creation and the beginning of its ID. The whole ID of an anonymous
// task is the key to it, and URLs are kept in histories and logs.
func reference(r taskstore.Record) string { return newReference(r.CreatedAt, beginningOf(r.ID)) }

func newReference(created time.Time, id string) string {
	return strconv.FormatInt(created.UnixMicro(), 36) + "-" + id
}

// idPrefix is how much of an ID a reference has.
const idPrefix = 8

// beginningOf returns the beginning of an ID. Characters with a meaning in a URL are replaced: some IDs are chosen by
// clients.
func beginningOf(id string) string {
	b := []byte(id[:min(len(id), idPrefix)])
	for i, c := range b {
		if !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
			b[i] = '_'
		}
	}
	return string(b)
}

var (
	errNoTask     = failure{http.StatusNotFound, "there is no such task, or it has expired"}
	errUnreadable = failure{http.StatusInternalServerError, "the task cannot be read: what is stored of it is damaged, or a newer version of the server has written it"}
)

func parseReference(reference string) (created time.Time, id string, err error) {
	number, id, ok := strings.Cut(reference, "-")
	micros, failed := strconv.ParseInt(number, 36, 64)
	if !ok || failed != nil || len(id) > idPrefix { // by a longer one, a viewer could find out a whole ID
		return created, id, errNoTask
	}
	return time.UnixMicro(micros).UTC(), id, nil
}

// findTask returns the task of a reference, whole.
func (c *Console) findTask(ctx context.Context, reference string) (taskstore.Record, error) {
	record, err := c.seekTask(ctx, reference)
	if err != nil {
		return record, err
	}
	return c.readTask(ctx, record.ID)
}

// readTask returns a task, whole.
func (c *Console) readTask(ctx context.Context, id string) (taskstore.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	record, err := c.server.Operator("").Task(ctx, id)
	switch {
	case errors.Is(err, taskstore.ErrNoRecord):
		return record, errNoTask
	case errors.Is(err, taskstore.ErrUnreadable):
		return record, errUnreadable
	}
	c.server.Backend().ShowPlace(&record)
	return record, err
}

// seekTask returns the task of a reference, as far as a scan does.
func (c *Console) seekTask(ctx context.Context, reference string) (taskstore.Record, error) {
	created, prefix, err := parseReference(reference)
	if err != nil {
		return taskstore.Record{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	var after taskstore.Position
	for {
		page, err := c.inspector.Scan(ctx, taskstore.Filter{CreatedFrom: created, CreatedUntil: created}, after, pageSize)
		if err != nil {
			return taskstore.Record{}, err
		}
		for _, r := range page {
			if beginningOf(r.ID) == prefix {
				return r, nil
			}
			after = taskstore.Position{CreatedAt: r.CreatedAt, ID: r.ID}
		}
		if len(page) < pageSize {
			return taskstore.Record{}, errNoTask
		}
	}
}

// detail is the data of a task's page.
type detail struct {
	Path      string
	Task      taskstore.Record
	Reference string
	Moments   []taskstore.Moment
	Questions []question
	// Steps are the newest mostSteps, and EarlierSteps is how many others there are.
	Steps        []taskstore.StepSummary
	EarlierSteps int
	// StepsFailed says that the steps cannot be read.
	StepsFailed bool
	CanAct      bool
	CanReveal   bool
	// Revealed names the hidden part that the viewer has asked to see, or is "", and Text is that part.
	Revealed, Text string
	// Problem is why an action was not taken.
	Problem string
}

// question is a question of a task.
type question struct {
	taskstore.Input
	Message string
	// Site is where the question sends the requestor, if it does.
	Site     string
	Controls []control
	// IsRaw says that the response is written as JSON: it has no form. Raw is the text in that field.
	IsRaw      bool
	Raw        string
	SchemaText string
	IsOpen     bool
	isAnew     bool // asked anew in another form: its defaults may be an answer, which is hidden
}

// newDetail makes the data of a task's page. The form of a question keeps the viewer's entries.
func (c *Console) newDetail(ctx context.Context, r taskstore.Record, viewer Viewer, entered url.Values) detail {
	d := detail{Path: c.options.Path, Task: r, Reference: reference(r), Moments: r.Timeline.Moments(), CanAct: viewer.Act, CanReveal: viewer.Reveal}
	slices.Reverse(d.Moments)
	for _, in := range r.Inputs {
		q := question{Input: in, IsOpen: in.State == taskstore.InputOutstanding, Message: messageOf(in), Site: siteOf(in)}
		if q.isAnew = spec.IsAskedAnew(in.Key); !q.isAnew {
			q.SchemaText = string(indent.JSON(in.Schema))
		}
		if q.IsOpen && viewer.Act {
			q.addControls(entered)
		}
		d.Questions = append(d.Questions, q)
	}
	c.addSteps(ctx, &d)
	return d
}

// addSteps adds the steps of the task. The rest of the page does without them.
func (c *Console) addSteps(ctx context.Context, d *detail) {
	if d.Task.StepBytes == 0 {
		return
	}
	reading, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	steps, err := c.server.Operator("").Steps(reading, d.Task.ID)
	if d.StepsFailed = err != nil; d.StepsFailed && ctx.Err() == nil {
		c.server.Backend().Notice(slog.LevelError, "console failed", "task", taskstore.LogID(d.Task.Principal, d.Task.ID), "error", err)
	}
	d.EarlierSteps = max(0, len(steps)-mostSteps)
	d.Steps = steps[d.EarlierSteps:]
}

// addControls adds the controls for an answer, with the viewer's entries.
func (q *question) addControls(entered url.Values) {
	asked, err := form.Parse(q.Schema)
	q.IsRaw = err != nil || q.Method != "elicitation/create"
	var own url.Values
	if entered.Get("key") == q.Key {
		own, q.Raw = entered, entered.Get("response")
	}
	for n, f := range asked.Fields {
		if q.isAnew {
			f.Default = nil
		}
		q.Controls = append(q.Controls, newControl(n, f, own))
	}
}

// siteOf returns the host of the address that a question asks to visit, or "". The rest of the address may be a secret.
func siteOf(in taskstore.Input) string {
	var params struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(in.Params, &params)
	if params.URL == "" {
		return ""
	}
	if address, err := url.Parse(params.URL); err == nil && address.Host != "" {
		return address.Host
	}
	return "an address without a host"
}

// messageOf returns the text of a question. Requests to a model have no message.
func messageOf(in taskstore.Input) string {
	var params struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(in.Params, &params)
	return params.Message
}

var detailParts = []string{"status", "questions", "steps", "actions", "timeline"}

func (c *Console) showTask(w http.ResponseWriter, r request) error {
	record, err := c.findTask(r.Context(), r.PathValue("task"))
	if err != nil {
		return err
	}
	return c.writeTask(w, http.StatusOK, r, c.newDetail(r.Context(), record, r.viewer, nil))
}

func (c *Console) writeTask(w http.ResponseWriter, status int, r request, d detail) error {
	return c.write(w, status, "task.html", page{Title: "Task of " + d.Task.Tool, View: "tasks/" + d.Reference, Viewer: r.viewer, Data: d})
}

// backToTask answers a GET of a path that takes only a POST, such as from a browser that goes back. It redirects to the
// task.
func (c *Console) backToTask(w http.ResponseWriter, r request) error {
	c.goTo(w, "tasks/"+url.PathEscape(r.PathValue("task")))
	return nil
}

// describeViewer says as whom the server sees a viewer.
func describeViewer(v Viewer) string {
	may := map[[2]bool]string{{true, true}: "may act and reveal", {true, false}: "may act", {false, true}: "may reveal", {false, false}: "may only look"}
	return cmp.Or(v.Name, "without a name") + ", " + may[[2]bool{v.Act, v.Reveal}]
}

// functions are those of the templates.
func (c *Console) functions() template.FuncMap {
	return template.FuncMap{
		"reference": reference,
		"owner":     c.markPrincipal,
		"seal":      c.seal,
		"asks": func(r taskstore.Record) (keys []string) {
			for _, m := range openQuestions(r) {
				keys = append(keys, m.Text)
			}
			return keys
		},
		"message":  func(r taskstore.Record) string { return text.Shorten(r.Report().Message, mostMessage) },
		"logID":    func(r taskstore.Record) string { return taskstore.LogID(r.Principal, r.ID) },
		"machine":  func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"human":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"viewer":   describeViewer,
		"duration": formatDuration,
		"size":     formatSize,
		"kind":     nameStepKind,
		"worker":   func(name string) string { return text.Shorten(name, idPrefix) },
		"state":    stateOf,
		"words":    func(name any) string { return strings.ReplaceAll(fmt.Sprint(name), "_", " ") },
		"progress": func(r taskstore.Record) bool { return r.Progress.Total > 0 && !r.Done() },
		"number":   func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) },
	}
}

// formatDuration returns a duration as a person says it, such as 2h 10m.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(big, small time.Duration, units string) string {
		return fmt.Sprintf("%d%c %d%c", d/big, units[0], d%big/small, units[1])
	}
	switch {
	case d >= day:
		return two(day, time.Hour, "dh")
	case d >= time.Hour:
		return two(time.Hour, time.Minute, "hm")
	case d >= time.Minute:
		return two(time.Minute, time.Second, "ms")
	case d >= time.Second:
		return d.Truncate(time.Second).String()
	}
	return d.Truncate(time.Millisecond).String()
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

// stateOf names the state of a task: its phase, or how it has ended.
func stateOf(r taskstore.Record) string {
	switch {
	case r.Outcome == nil:
		return string(r.Phase)
	case r.Outcome.IsError:
		return "tool_error"
	}
	return string(r.Outcome.Kind)
}
