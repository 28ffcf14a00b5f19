package console

import (
	"context"
	"encoding/json"
	"errors"
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
	State     string
	// Owner is as in a list.
	Owner string
	// Danger says whether the worker is late or lost.
	Danger    danger
	Moments   []moment
	Questions []question
	// Steps are the newest steps, newest first, and FoldedSteps those before them. EarlierSteps is how many others there
	// are.
	Steps, FoldedSteps []step
	EarlierSteps       int
	// StepsFailed says that the steps cannot be read.
	StepsFailed bool
	CanAct      bool
	CanReveal   bool
	// Arguments are those of the task for a viewer who may reveal, as a text.
	Arguments string
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

// step is a step of a task.
type step struct {
	taskstore.StepSummary
	// After is the time since the step before it, or since its run began if that was later.
	After time.Duration
}

// newDetail makes the data of a task's page. The form of a question keeps the viewer's entries. The audit trail gets the
// look of a viewer who may reveal.
func (c *Console) newDetail(ctx context.Context, r taskstore.Record, viewer Viewer, entered url.Values) detail {
	d := detail{
		Path: c.options.Path, Task: r, Reference: reference(r), Owner: c.nameOwner(r.Principal, viewer), Danger: c.findDanger(ctx, &r),
		Moments: listMoments(r), CanAct: viewer.Act, CanReveal: viewer.Reveal,
	}
	d.State = stateOf(&r, d.Danger.IsLost)
	if viewer.Reveal {
		c.auditTask(ctx, viewer, r)
	}
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
	moments := d.Task.Timeline.Moments()
	last := time.Time{}
	for _, s := range steps {
		for _, m := range moments {
			if m.Kind == taskstore.EventStarted && m.Attempt == s.Attempt && m.At.After(last) {
				last = m.At
			}
		}
		shown := step{StepSummary: s}
		if !last.IsZero() {
			shown.After = max(0, s.At.Sub(last))
		}
		d.Steps, last = append(d.Steps, shown), s.At
	}
	d.EarlierSteps = max(0, len(steps)-mostSteps)
	slices.Reverse(d.Steps)
	d.Steps = d.Steps[:min(len(d.Steps), mostSteps)]
	shown := min(len(d.Steps), unfolded)
	d.Steps, d.FoldedSteps = d.Steps[:shown], d.Steps[shown:]
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
	if r.viewer.Reveal {
		d.Arguments = text.Shorten(string(indent.JSON(d.Task.Arguments)), mostShown)
	}
	return c.write(w, status, "task.html", page{Title: d.Task.Tool + " " + beginningOf(d.Task.ID), View: "tasks/" + d.Reference, Viewer: r.viewer, Data: d})
}

// backToTask answers a GET of a path that takes only a POST, such as from a browser that goes back. It redirects to the
// task.
func (c *Console) backToTask(w http.ResponseWriter, r request) error {
	c.goTo(w, "tasks/"+url.PathEscape(r.PathValue("task")))
	return nil
}
