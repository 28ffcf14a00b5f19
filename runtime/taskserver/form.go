package taskserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// changedForm begins the message of a question that was answered under another form.
const changedForm = "The form has changed since it was answered. "

// nameForm returns the key of the n-th form of a question, from 1. Each form has a key of its own: a key is used only once
// (E-42). It is not the next key of the step, since that may have the answer to another question of the handler.
func nameForm(key string, n int) string {
	if n == 1 {
		return key
	}
	return fmt.Sprint(key, spec.FormMark, n)
}

// listForms returns the forms of a question that a task has stored, oldest first.
func listForms(r *taskstore.Record, key string) (forms []taskstore.Input) {
	for {
		i := findInput(r, nameForm(key, len(forms)+1))
		if i < 0 {
			return forms
		}
		forms = append(forms, r.Inputs[i])
	}
}

// placeQuestion returns the key under which a task has a question of its handler, and the event that stores it there.
// There is no event if the task has the question, or an answer that fits it.
func placeQuestion(r *taskstore.Record, in mcptask.Request) (key string, e event) {
	forms := listForms(r, in.Key)
	if len(forms) == 0 {
		return in.Key, event{kind: eventAsk, input: in}
	}
	newest := forms[len(forms)-1]
	var given *taskstore.Input // the newest answer
	for i, form := range slices.Backward(forms) {
		switch {
		case form.State != taskstore.InputAnswered:
		case form.Error != nil || isSameForm(form.Request, in) || fitsForm(form.Request, in, form.Response):
			if newest.State == taskstore.InputOutstanding { // the form is again what it was
				return form.Key, event{kind: eventWithdraw, key: newest.Key}
			}
			return form.Key, event{}
		case given == nil:
			given = &forms[i]
		}
	}
	switch {
	case newest.State == taskstore.InputOutstanding && isSameForm(newest.Request, in), newest.State == taskstore.InputSuperseded && given == nil:
		return newest.Key, event{} // it is open, or its handler has withdrawn it
	case given != nil:
		in = askAnew(in, *given)
	}
	in.Key = nameForm(in.Key, len(forms)+1)
	return in.Key, event{kind: eventAsk, input: in, key: newest.Key}
}

// currentForm returns the key of the question that an answer to the one with the key counts for: another one if that
// was asked anew in another form, which the answer fits. A dismissal counts only for the form that was dismissed, since
// a client may dismiss a question because it was withdrawn.
func currentForm(r *taskstore.Record, key string, response json.RawMessage) string {
	i := findInput(r, key)
	if i < 0 || r.Inputs[i].State != taskstore.InputSuperseded {
		return key
	}
	first, _, _ := strings.Cut(key, spec.FormMark)
	forms := listForms(r, first)
	newest := len(forms) - 1
	_, err := mcptask.AcceptedContent(response)
	if newest < 0 || forms[newest].State != taskstore.InputOutstanding || errors.Is(err, mcptask.ErrDismissed) || !fitsForm(r.Inputs[i].Request, forms[newest].Request, response) {
		return key
	}
	return forms[newest].Key
}

// isMisfitOfForm reports whether a question was asked anew in another form, and the answer or the requestor's error shows
// only that the answer does not fit that form. The requestor's program may know only the earlier one.
func isMisfitOfForm(r *taskstore.Record, key string, response json.RawMessage, failed *mcptask.Error) bool {
	i := findInput(r, key)
	if i < 0 || !spec.IsAskedAnew(key) {
		return false
	}
	in := r.Inputs[i].Request
	if failed != nil {
		return errors.Is(explainFailure(in, failed), mcptask.ErrInvalidAnswer)
	}
	return errors.Is(mcptask.CheckAnswer(context.Background(), in, response), mcptask.ErrInvalidAnswer)
}

// fitsForm reports whether an answer to one question answers another one.
func fitsForm(asked, in mcptask.Request, response json.RawMessage) bool {
	return requiredCapability(asked) == requiredCapability(in) && mcptask.CheckAnswer(context.Background(), in, response) == nil
}

// isSameForm reports whether two questions ask for the same: the text of a question, and the descriptions and defaults of
// its properties, do not matter.
func isSameForm(a, b mcptask.Request) bool {
	return requiredCapability(a) == requiredCapability(b) && value.IsSameForm(a.Schema, b.Schema)
}

// askAnew returns a question with an answer to another form of it as defaults, as far as they fit and are no secrets.
func askAnew(in mcptask.Request, given taskstore.Input) mcptask.Request {
	content, err := mcptask.AcceptedContent(given.Response)
	if in.Schema == nil || err != nil {
		return in
	}
	params, err := value.Decode[map[string]any](in.Params)
	if err != nil {
		return in
	}
	schema := addDefaults(in.Schema, content, given.Schema)
	params["message"], params["requestedSchema"] = fmt.Sprint(changedForm, params["message"]), schema
	edited, err := value.Marshal(params)
	if err != nil {
		return in
	}
	in.Schema, in.Params = schema, edited
	return in
}

// addDefaults returns the schema of a form with members of content as defaults, if they fit their properties. It leaves out
// secrets: properties that are write-only in it or in the former schema. The properties keep their order, in which a person
// is asked for them. addDefaults returns a schema that it cannot read unchanged.
func addDefaults(schema, content, former json.RawMessage) json.RawMessage {
	form, err := value.Decode[map[string]json.RawMessage](schema)
	given, contentErr := value.Decode[map[string]json.RawMessage](content)
	if err != nil || contentErr != nil {
		return schema
	}
	for _, s := range []json.RawMessage{schema, former} {
		fields, _ := value.Decode[struct {
			Properties map[string]struct{ WriteOnly bool }
		}](s)
		maps.DeleteFunc(given, func(name string, _ json.RawMessage) bool { return fields.Properties[name].WriteOnly })
	}
	required := form["required"]
	delete(form, "required") // one property is checked at a time
	loose, err := value.Marshal(form)
	if err != nil {
		return schema
	}
	checker, err := validate.Compile(string(loose), true)
	if err != nil {
		return schema
	}
	properties := json.NewDecoder(bytes.NewReader(form["properties"]))
	if _, err = properties.Token(); err != nil {
		return schema
	}
	var edited []byte
	for properties.More() {
		name, err := properties.Token()
		var property map[string]json.RawMessage
		if err != nil || properties.Decode(&property) != nil {
			return schema
		}
		text := fmt.Sprint(name)
		if answer := given[text]; answer != nil {
			if one, err := value.Marshal(map[string]json.RawMessage{text: answer}); err == nil && checker.Check(context.Background(), one) == nil {
				property["default"] = answer
			}
		}
		member, err := value.Marshal(map[string]any{text: property})
		if err != nil {
			return schema
		}
		edited = append(append(edited, ','), member[1:len(member)-1]...)
	}
	if len(edited) == 0 {
		return schema
	}
	edited[0] = '{'
	form["properties"] = append(edited, '}')
	if required != nil {
		form["required"] = required
	}
	if filled, err := value.Marshal(form); err == nil {
		return filled
	}
	return schema
}
