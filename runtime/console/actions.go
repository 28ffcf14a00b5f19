package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	"github.com/mcptaskgen/mcptaskgen/internal/indent"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// errMayNot refuses a viewer who may not do something.
var errMayNot = failure{http.StatusForbidden, "you may not do this here"}

// act does an action of a viewer who may act, and goes to a task's page. That page shows the reason if the action is
// refused.
func (c *Console) act(w http.ResponseWriter, r request, do func(*taskserver.Operator, taskstore.Record) (next taskstore.Record, err error)) error {
	if !r.viewer.Act {
		return errMayNot
	}
	record, err := c.findTask(r.Context(), r.PathValue("task"))
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, answerLength)
	if err := r.ParseForm(); err != nil {
		return failure{http.StatusBadRequest, "the form cannot be read, or is longer than a megabyte"}
	}
	next, err := do(c.server.Operator(r.viewer.Name), record)
	if err == nil {
		c.goTo(w, "tasks/"+reference(next))
		return nil
	}
	if latest, err := c.findTask(r.Context(), r.PathValue("task")); err == nil {
		record = latest
	}
	d := c.newDetail(r.Context(), record, r.viewer, r.PostForm)
	f := c.explain(err)
	d.Problem = f.text
	return c.writeTask(w, f.status, r, d)
}

// goTo sends the browser to another page of the console.
func (c *Console) goTo(w http.ResponseWriter, below string) {
	w.Header().Set("Location", c.options.Path+below)
	w.WriteHeader(http.StatusSeeOther)
}

// errForm says that a form has no answer to a question.
var errForm = errors.New("the form does not fit")

// explain returns the text of an action's error for a viewer. The error of a store may have details of the database,
// and only the log gets it.
func (c *Console) explain(err error) failure {
	var wire *mcptask.Error
	var exceeded *taskstore.QuotaError
	var known failure
	told := strings.TrimPrefix(err.Error(), "mcptask: ")
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case errors.As(err, &known):
		return known
	case slices.ContainsFunc([]error{taskserver.ErrTaskEnded, taskserver.ErrNotAsked, taskserver.ErrNoTool}, is):
		return failure{http.StatusConflict, told}
	case is(taskstore.ErrNoRecord):
		return errNoTask
	case is(taskstore.ErrUnreadable):
		return errUnreadable
	case is(mcptask.ErrInvalidAnswer), is(errForm):
		return failure{http.StatusUnprocessableEntity, told}
	case errors.As(err, &exceeded):
		return failure{http.StatusTooManyRequests, told}
	case errors.As(err, &wire):
		return failure{http.StatusUnprocessableEntity, wire.Message}
	}
	c.server.Backend().Notice(slog.LevelError, "console failed", "error", err)
	return failure{http.StatusServiceUnavailable, "the store did not take it: the server's log says why"}
}

func (c *Console) cancel(w http.ResponseWriter, r request) error {
	return c.act(w, r, func(o *taskserver.Operator, record taskstore.Record) (taskstore.Record, error) {
		return record, o.Cancel(r.Context(), record.ID)
	})
}

func (c *Console) again(w http.ResponseWriter, r request) error {
	return c.act(w, r, func(o *taskserver.Operator, record taskstore.Record) (taskstore.Record, error) {
		return o.RunAgain(r.Context(), record.ID)
	})
}

func (c *Console) answer(w http.ResponseWriter, r request) error {
	return c.act(w, r, func(o *taskserver.Operator, record taskstore.Record) (taskstore.Record, error) {
		key := r.PostForm.Get("key")
		response, err := readResponse(record, key, r.PostForm)
		if err == nil {
			err = o.Answer(r.Context(), record.ID, key, response)
		}
		return record, err
	})
}

// readResponse returns the response to a question, as a form has it.
func readResponse(record taskstore.Record, key string, entered url.Values) (json.RawMessage, error) {
	action := entered.Get("action")
	if action == "raw" {
		raw := json.RawMessage(entered.Get("response"))
		if !json.Valid(raw) {
			return nil, fmt.Errorf("%w: the response is not JSON", errForm)
		}
		return raw, nil
	}
	response := map[string]any{"action": action}
	for _, in := range record.Inputs {
		if in.Key != key || action != "accept" || in.Schema == nil {
			continue
		}
		asked, err := form.Parse(in.Schema)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errForm, err)
		}
		if response["content"], err = readContent(asked.Fields, entered); err != nil {
			return nil, err
		}
	}
	return json.Marshal(response)
}

// The things that a viewer may reveal, beside the arguments and the principal, which the page of a task has.
const (
	revealResult  = "result"
	revealAnswers = "answers"
	revealSteps   = "steps"
)

// reveal shows something of a task that is hidden otherwise. It is a POST, so that no link or history does it again,
// and so that another site cannot.
func (c *Console) reveal(w http.ResponseWriter, r request) error {
	if !r.viewer.Reveal {
		return errMayNot
	}
	record, err := c.findTask(r.Context(), r.PathValue("task"))
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, answerLength)
	d := c.newDetail(r.Context(), record, r.viewer, nil)
	switch d.Revealed = r.PostFormValue("what"); d.Revealed {
	case revealResult:
		d.Text = resultText(record)
	case revealAnswers:
		var all strings.Builder
		for _, in := range record.Inputs {
			fmt.Fprintf(&all, "%s: %s\n", in.Key, indent.JSON(in.Response))
		}
		d.Text = all.String()
	case revealSteps:
		if d.Text, err = c.readStepValues(r.Context(), record); err != nil {
			return err
		}
	default:
		return failure{http.StatusBadRequest, "there is nothing of that name to reveal"}
	}
	d.Text = text.Shorten(d.Text, mostShown)
	c.server.Operator(r.viewer.Name).Reveal(r.Context(), record, d.Revealed)
	return c.writeTask(w, http.StatusOK, r, d)
}

// readStepValues returns the values of the newest steps of a task, newest first, since long texts are cut at their end.
func (c *Console) readStepValues(ctx context.Context, r taskstore.Record) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	steps, err := c.server.Operator("").StepValues(ctx, r.ID)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	earlier := max(0, len(steps)-mostSteps)
	if earlier > 0 {
		fmt.Fprintf(&all, "The newest %d: %d earlier ones are left out.\n", mostSteps, earlier)
	}
	for _, step := range slices.Backward(steps[earlier:]) {
		fmt.Fprintf(&all, "%s: %s\n", step.Name, indent.JSON(step.Value))
	}
	return all.String(), nil
}

// resultText returns the result of a task, or its error, as JSON.
func resultText(r taskstore.Record) string {
	switch {
	case r.Outcome == nil:
		return "none yet"
	case r.Outcome.Error != nil:
		data, err := json.Marshal(r.Outcome.Error)
		if err != nil {
			return r.Outcome.Error.Message
		}
		return string(indent.JSON(data))
	}
	return string(indent.JSON(r.Outcome.Result))
}
