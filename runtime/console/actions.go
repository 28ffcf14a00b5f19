package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// errMayNot refuses a viewer who may not do something.
var errMayNot = failure{http.StatusForbidden, "you may not do this here"}

// act does an action of a viewer who may act, and goes back to the task's page. What the action refuses is shown there.
func (c *Console) act(w http.ResponseWriter, r request, do func(*mcptask.Operator, mcptask.Record) (next string, err error)) error {
	if !r.viewer.Act {
		return errMayNot
	}
	record, err := c.findTask(r.Context(), r.viewer, r.PathValue("task"))
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, answerLength)
	if err := r.ParseForm(); err != nil {
		return failure{http.StatusBadRequest, "the form cannot be read: " + err.Error()}
	}
	next, err := do(c.server.Operator(r.viewer.Name), record)
	if err == nil {
		w.Header().Set("Location", c.options.Path+"tasks/"+url.PathEscape(next))
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	if latest, err := c.findTask(r.Context(), r.viewer, r.PathValue("task")); err == nil {
		record = latest
	}
	d := newDetail(c, record, r.viewer)
	d.Problem = c.explain(err)
	return c.writeTask(w, http.StatusConflict, d)
}

// errForm says that a form has no answer to a question.
var errForm = errors.New("the form does not fit")

// explain returns what a viewer is told of an action's error. That of a store may tell of the database, and is for the log.
func (c *Console) explain(err error) string {
	var wire *mcptask.Error
	var exceeded *mcptask.QuotaError
	for _, told := range []error{mcptask.ErrTaskEnded, mcptask.ErrNotAsked, mcptask.ErrNoTool, mcptask.ErrNoRecord, mcptask.ErrInvalidAnswer, errForm} {
		if errors.Is(err, told) {
			return err.Error()
		}
	}
	switch {
	case errors.As(err, &wire):
		return wire.Message
	case errors.As(err, &exceeded):
		return exceeded.Error()
	}
	c.server.Notice(slog.LevelError, "console failed", "error", err)
	return "it failed: see the server's log"
}

func (c *Console) cancel(w http.ResponseWriter, r request) error {
	return c.act(w, r, func(o *mcptask.Operator, record mcptask.Record) (string, error) {
		return reference(record), o.Cancel(r.Context(), record.ID)
	})
}

func (c *Console) again(w http.ResponseWriter, r request) error {
	return c.act(w, r, func(o *mcptask.Operator, record mcptask.Record) (string, error) {
		fresh, err := o.RunAgain(r.Context(), record.ID)
		return reference(fresh), err
	})
}

func (c *Console) answer(w http.ResponseWriter, r request) error {
	return c.act(w, r, func(o *mcptask.Operator, record mcptask.Record) (string, error) {
		key := r.PostForm.Get("key")
		response, err := readResponse(record, key, r.PostForm)
		if err == nil {
			err = o.Answer(r.Context(), record.ID, key, response)
		}
		return reference(record), err
	})
}

// readResponse returns the response to a question, as a form has it.
func readResponse(record mcptask.Record, key string, form url.Values) (json.RawMessage, error) {
	action := form.Get("action")
	if action == "raw" {
		raw := json.RawMessage(form.Get("response"))
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
		content, err := readContent(fieldsOf(in), form)
		if err != nil {
			return nil, err
		}
		response["content"] = content
	}
	return json.Marshal(response)
}

// The things that a viewer may reveal.
const (
	revealArguments = "arguments"
	revealResult    = "result"
	revealAnswers   = "answers"
	revealPrincipal = "principal"
)

// reveal shows something of a task that is hidden otherwise. It is a POST, so that no link or history does it again, and
// so that another site cannot.
func (c *Console) reveal(w http.ResponseWriter, r request) error {
	if !r.viewer.Reveal {
		return errMayNot
	}
	record, err := c.findTask(r.Context(), r.viewer, r.PathValue("task"))
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, answerLength)
	d := newDetail(c, record, r.viewer)
	switch d.Revealed = r.PostFormValue("what"); d.Revealed {
	case revealArguments:
		d.Text = indent(record.Arguments)
	case revealResult:
		d.Text = resultText(record)
	case revealAnswers:
		var all strings.Builder
		for _, in := range record.Inputs {
			_, _ = all.WriteString(in.Key + ": " + indent(in.Response) + "\n") // never fails
		}
		d.Text = all.String()
	case revealPrincipal:
		d.Text = record.Principal
		if d.Text == "" {
			d.Text = "anonymous, of the account " + record.Account
		}
	default:
		return failure{http.StatusBadRequest, "there is nothing of that name to reveal"}
	}
	d.Text = shorten(d.Text, mostShown)
	c.server.Operator(r.viewer.Name).Reveal(r.Context(), record, d.Revealed)
	return c.writeTask(w, http.StatusOK, d)
}

// resultText returns the result of a task, or its error, as JSON.
func resultText(r mcptask.Record) string {
	switch {
	case r.Outcome == nil:
		return "none yet"
	case r.Outcome.Error != nil:
		data, err := json.Marshal(r.Outcome.Error)
		if err != nil {
			return r.Outcome.Error.Message
		}
		return indent(data)
	}
	return indent(r.Outcome.Result)
}
