package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// page is what each template of a whole page gets.
type page struct {
	Title string
	Path  string
	// View is the view that the page shows, for the stream of its changes. "" means that it has none.
	View string
	Data any
}

// The bounds of what a page shows.
const (
	pageSize     = 50
	mostWaiting  = 10
	scanWaiting  = 200
	mostShown    = 64 << 10 // bytes of a revealed text
	mostMessage  = 300      // bytes of a message in a list
	readsWithin  = 10 * time.Second
	answerLength = 1 << 20
)

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

// overview is what the first page shows.
type overview struct {
	Path    string
	Tools   []toolCounts
	Total   toolCounts
	Ends    ends
	Workers []mcptask.WorkerLease
	Waiting []waiting
}

// toolCounts counts the unfinished tasks of a tool.
type toolCounts struct {
	Tool                   string
	Queued, Running, Asked int
}

// All returns the sum.
func (t toolCounts) All() int { return t.Queued + t.Running + t.Asked }

// add counts tasks.
func (t *toolCounts) add(c mcptask.Count) {
	switch c.Phase {
	case mcptask.PhaseQueued:
		t.Queued += c.Count
	case mcptask.PhaseRunning:
		t.Running += c.Count
	case mcptask.PhaseInputRequired:
		t.Asked += c.Count
	}
}

// waiting is a question that waits.
type waiting struct {
	Task mcptask.Record
	Key  string
	// Message is what it asks.
	Message string
	// Since is when it was asked.
	Since time.Time
}

// readOverview reads what the first page shows.
func (c *Console) readOverview(ctx context.Context) (overview, error) {
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	o := overview{Path: c.options.Path, Ends: newEnds(c.server.EndsPerMinute())}
	counts, err := c.inspector.CountUnfinished(ctx)
	if err != nil {
		return o, err
	}
	byTool := map[string]*toolCounts{}
	for _, tool := range c.server.Tools() {
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
	slices.SortFunc(o.Tools, func(a, b toolCounts) int { return cmp.Or(cmp.Compare(b.All(), a.All()), cmp.Compare(a.Tool, b.Tool)) })
	if o.Workers, err = c.inspector.Workers(ctx); err != nil {
		return o, err
	}
	slices.SortFunc(o.Workers, func(a, b mcptask.WorkerLease) int {
		return cmp.Or(cmp.Compare(b.Unfinished, a.Unfinished), cmp.Compare(a.Worker, b.Worker))
	})
	asked, err := c.inspector.Scan(ctx, mcptask.Filter{Phase: mcptask.PhaseInputRequired, OldestFirst: true}, mcptask.Position{}, scanWaiting)
	if err != nil {
		return o, err
	}
	for _, r := range asked {
		o.Waiting = append(o.Waiting, waitingOf(r)...)
	}
	slices.SortFunc(o.Waiting, func(a, b waiting) int { return a.Since.Compare(b.Since) })
	o.Waiting = o.Waiting[:min(len(o.Waiting), mostWaiting)]
	for i := range o.Waiting {
		w := &o.Waiting[i]
		whole, err := c.server.Operator("").Task(ctx, w.Task.ID) // a scan may leave the questions out
		if err != nil && !errors.Is(err, mcptask.ErrNoRecord) {
			return o, err
		}
		for _, in := range whole.Inputs {
			if in.Key == w.Key {
				w.Message = shorten(messageOf(in), mostMessage)
			}
		}
	}
	return o, nil
}

// waitingOf returns the questions of a task that wait, as far as its timeline tells.
func waitingOf(r mcptask.Record) []waiting {
	var open []waiting
	for _, m := range r.Timeline.Moments() {
		switch m.Kind {
		case mcptask.EventAsked:
			open = append(open, waiting{Task: r, Key: m.Text, Since: m.At})
		case mcptask.EventAnswered, mcptask.EventWithdrawn:
			open = slices.DeleteFunc(open, func(w waiting) bool { return w.Key == m.Text })
		}
	}
	return open
}

// ends is how many tasks have ended in each of the last minutes.
type ends struct {
	Last int // in the last full minute
	Most int
	Bars []bar
}

// bar is a bar of the chart of ends.
type bar struct{ X, Y, Height, Count, Ago int }

// chartHeight is the height of the chart of ends.
const chartHeight = 40

func newEnds(minutes []int) ends {
	e := ends{Most: max(1, slices.Max(minutes))}
	if n := len(minutes); n > 1 {
		e.Last = minutes[n-2]
	}
	for i, n := range minutes {
		height := (n*chartHeight + e.Most - 1) / e.Most
		e.Bars = append(e.Bars, bar{X: i * 4, Y: chartHeight - height, Height: height, Count: n, Ago: len(minutes) - 1 - i})
	}
	return e
}

var overviewParts = []string{"totals", "tools", "waiting", "workers"}

func (c *Console) showOverview(w http.ResponseWriter, r request) error {
	o, err := c.readOverview(r.Context())
	if err != nil {
		return err
	}
	return c.write(w, http.StatusOK, "overview.html", page{Title: "Overview", View: "overview", Data: o})
}

// query is what the list of tasks is asked for.
type query struct {
	Tool, State, Principal, Age, Text string
	// After is the place in the list.
	After string
}

// states are the values of query.State.
var states = []string{"unfinished", "queued", "running", "input_required", "done", "result", "error", "cancelled"}

// ages are the values of query.Age, with their durations. A negative one admits what is older.
var ages = []struct {
	Name string
	For  time.Duration
}{
	{"last 5 minutes", 5 * time.Minute}, {"last hour", time.Hour}, {"last day", 24 * time.Hour}, {"last week", 7 * 24 * time.Hour},
	{"older than an hour", -time.Hour}, {"older than a day", -24 * time.Hour},
}

func newQuery(values url.Values) query {
	return query{
		Tool: values.Get("tool"), State: values.Get("state"), Principal: values.Get("principal"), Age: values.Get("age"),
		Text: values.Get("text"), After: values.Get("after"),
	}
}

// values returns the query of a URL.
func (q query) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"tool": q.Tool, "state": q.State, "principal": q.Principal, "age": q.Age, "text": q.Text, "after": q.After,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// filter returns the filter of a query.
func (q query) filter(viewer Viewer, now time.Time) (mcptask.Filter, error) {
	f := mcptask.Filter{Tool: q.Tool, Message: q.Text}
	switch {
	case q.State == "":
	case q.State == "unfinished":
		f.Unfinished = true
	case slices.Contains(states[1:5], q.State):
		f.Phase = mcptask.Phase(q.State)
	case slices.Contains(states, q.State):
		f.Outcome = mcptask.OutcomeKind(q.State)
	default:
		return f, failure{http.StatusBadRequest, fmt.Sprintf("no task has the state %q", q.State)}
	}
	if q.Principal != "" && !viewer.Reveal {
		return f, failure{http.StatusForbidden, "you may not look for principals"}
	}
	f.Principal = q.Principal
	for _, age := range ages {
		switch {
		case age.Name != q.Age:
		case age.For > 0:
			f.CreatedFrom = now.Add(-age.For)
		default:
			f.CreatedUntil = now.Add(age.For)
		}
	}
	return f, nil
}

// list is what the page of tasks shows.
type list struct {
	Path   string
	Query  query
	Tools  []string
	States []string
	Ages   []string
	Tasks  []mcptask.Record
	// Older is the query of the next page, or "".
	Older string
	// Reveals says that the viewer may look for principals.
	Reveals bool
	// Slow says that the store did not find an answer in time.
	Slow bool
}

// readList reads a page of tasks.
func (c *Console) readList(ctx context.Context, q query, viewer Viewer) (list, error) {
	l := list{Path: c.options.Path, Query: q, States: states, Reveals: viewer.Reveal}
	for _, tool := range c.server.Tools() {
		l.Tools = append(l.Tools, tool.Name)
	}
	if q.Tool != "" && !slices.Contains(l.Tools, q.Tool) {
		l.Tools = append(l.Tools, q.Tool) // of another server
	}
	slices.Sort(l.Tools)
	for _, age := range ages {
		l.Ages = append(l.Ages, age.Name)
	}
	filter, err := q.filter(viewer, c.server.Now())
	if err != nil {
		return l, err
	}
	var after mcptask.Position
	if q.After != "" {
		if after.CreatedAt, after.ID, err = parseReference(q.After); err != nil {
			return l, err
		}
	}
	within, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	l.Tasks, err = c.inspector.Scan(within, filter, after, pageSize+1)
	if err != nil {
		if l.Slow = within.Err() != nil && ctx.Err() == nil; l.Slow {
			return l, nil
		}
		return l, err
	}
	if len(l.Tasks) > pageSize {
		l.Tasks = l.Tasks[:pageSize]
		q.After = reference(l.Tasks[pageSize-1])
		l.Older = "?" + q.values().Encode()
	}
	return l, nil
}

func (c *Console) showTasks(w http.ResponseWriter, r request) error {
	q := newQuery(r.URL.Query())
	l, err := c.readList(r.Context(), q, r.viewer)
	if err != nil {
		return err
	}
	c.auditSearch(r, q)
	view := "tasks?" + q.values().Encode()
	return c.write(w, http.StatusOK, "tasks.html", page{Title: "Tasks", View: view, Data: l})
}

// auditSearch writes to the audit trail that a viewer looks for the tasks of a principal, which tells whose they are.
func (c *Console) auditSearch(r request, q query) {
	if q.Principal != "" {
		c.server.Operator(r.viewer.Name).Reveal(r.Context(), mcptask.Record{Principal: q.Principal, Tool: q.Tool}, "tasks of the principal")
	}
}

// reference returns what names a task in a URL: its creation and the beginning of its ID. The whole ID of an anonymous task
// is the key to it, and URLs are kept in histories and logs.
func reference(r mcptask.Record) string {
	return strconv.FormatInt(r.CreatedAt.UnixMicro(), 36) + "-" + r.ID[:min(len(r.ID), idPrefix)]
}

// idPrefix is how much of an ID a reference has.
const idPrefix = 8

var errNoTask = failure{http.StatusNotFound, "there is no such task, or it has expired"}

func parseReference(text string) (created time.Time, id string, err error) {
	number, id, ok := strings.Cut(text, "-")
	micros, failed := strconv.ParseInt(number, 36, 64)
	if !ok || failed != nil {
		return created, id, errNoTask
	}
	return time.UnixMicro(micros).UTC(), id, nil
}

// findTask returns the task of a reference, whole.
func (c *Console) findTask(ctx context.Context, viewer Viewer, text string) (mcptask.Record, error) {
	record, err := c.seekTask(ctx, text)
	if err != nil {
		return record, err
	}
	return c.readTask(ctx, viewer, record.ID)
}

// readTask returns a task, whole.
func (c *Console) readTask(ctx context.Context, viewer Viewer, id string) (mcptask.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	record, err := c.server.Operator(viewer.Name).Task(ctx, id)
	if errors.Is(err, mcptask.ErrNoRecord) {
		return record, errNoTask
	}
	return record, err
}

// seekTask returns the task of a reference, as far as a scan does.
func (c *Console) seekTask(ctx context.Context, text string) (mcptask.Record, error) {
	created, prefix, err := parseReference(text)
	if err != nil {
		return mcptask.Record{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	var after mcptask.Position
	for {
		page, err := c.inspector.Scan(ctx, mcptask.Filter{CreatedFrom: created, CreatedUntil: created}, after, pageSize)
		if err != nil {
			return mcptask.Record{}, err
		}
		for _, r := range page {
			if strings.HasPrefix(r.ID, prefix) && len(prefix) == min(len(r.ID), idPrefix) {
				return r, nil
			}
			after = mcptask.Position{CreatedAt: r.CreatedAt, ID: r.ID}
		}
		if len(page) < pageSize {
			return mcptask.Record{}, errNoTask
		}
	}
}

// detail is what the page of a task shows.
type detail struct {
	Path      string
	Task      mcptask.Record
	Reference string
	Moments   []mcptask.Moment
	Questions []question
	CanAct    bool
	CanReveal bool
	// Revealed is what the viewer has asked to see, or "", and Text is that.
	Revealed, Text string
	// Problem is why an action was not taken.
	Problem string
}

// question is a question of a task.
type question struct {
	mcptask.Input
	Message string
	Fields  []field
	// Schema is the schema as a text.
	SchemaText string
	Open       bool
}

func newDetail(c *Console, r mcptask.Record, viewer Viewer) detail {
	d := detail{Path: c.options.Path, Task: r, Reference: reference(r), Moments: r.Timeline.Moments(), CanAct: viewer.Act, CanReveal: viewer.Reveal}
	slices.Reverse(d.Moments)
	for _, in := range r.Inputs {
		q := question{Input: in, Open: in.State == mcptask.InputOutstanding, SchemaText: indent(in.Schema), Fields: fieldsOf(in)}
		q.Message = messageOf(in)
		d.Questions = append(d.Questions, q)
	}
	return d
}

// messageOf returns what a question asks. Requests to a model have no message.
func messageOf(in mcptask.Input) string {
	var params struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(in.Params, &params)
	return params.Message
}

var detailParts = []string{"status", "questions", "actions", "timeline"}

func (c *Console) showTask(w http.ResponseWriter, r request) error {
	record, err := c.findTask(r.Context(), r.viewer, r.PathValue("task"))
	if err != nil {
		return err
	}
	return c.writeTask(w, http.StatusOK, newDetail(c, record, r.viewer))
}

func (c *Console) writeTask(w http.ResponseWriter, status int, d detail) error {
	return c.write(w, status, "task.html", page{Title: "Task of " + d.Task.Tool, View: "tasks/" + d.Reference, Data: d})
}

// markPrincipal returns a mark by which owners can be told apart. It does not tell who they are.
func (c *Console) markPrincipal(principal string) string {
	if principal == "" {
		return "anonymous"
	}
	sum := hmac.New(sha256.New, c.mark)
	_, _ = sum.Write([]byte(principal)) // never fails
	return "owner " + hex.EncodeToString(sum.Sum(nil))[:6]
}

// indent returns JSON as a text of several lines.
func indent(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return string(data)
	}
	return b.String()
}

// shorten returns the beginning of a text.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// functions are those of the templates.
func (c *Console) functions() template.FuncMap {
	return template.FuncMap{
		"reference": reference,
		"owner":     c.markPrincipal,
		"message":   func(r mcptask.Record) string { return shorten(r.Report().Message, mostMessage) },
		"logID":     func(r mcptask.Record) string { return mcptask.LogID("", r.ID) },
		"machine":   func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"human":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"worker":    func(name string) string { return shorten(name, idPrefix) },
		"state":     stateOf,
		"words":     func(name any) string { return strings.ReplaceAll(fmt.Sprint(name), "_", " ") },
		"progress":  func(r mcptask.Record) bool { return r.Progress.Total > 0 && !r.Done() },
		"number":    func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) },
	}
}

// stateOf names the state of a task: its phase, or how it has ended.
func stateOf(r mcptask.Record) string {
	switch {
	case r.Outcome == nil:
		return string(r.Phase)
	case r.Outcome.IsError:
		return "tool_error"
	}
	return string(r.Outcome.Kind)
}
