package mcptask

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

// Answerer answers questions on the client's side. Make one with a generated
// Answer<Input> and join several with Answers. The zero Answerer answers nothing.
type Answerer struct{ answerers []inputAnswerer }

// inputAnswerer answers the questions of one input type, or all if the input has no name.
type inputAnswerer struct {
	input  InputSpec
	answer func(context.Context, Question) (any, error)
}

// Answer makes an Answerer for one input type. f returns ErrDeclined or
// ErrDismissed to refuse. It may be called concurrently.
func Answer[T any](input InputSpec, f func(context.Context, Question) (T, error)) Answerer {
	answer := func(ctx context.Context, q Question) (any, error) {
		value, err := f(ctx, q)
		return &value, err
	}
	return Answerer{[]inputAnswerer{{input, answer}}}
}

// AnswerAny makes an Answerer for any form, also of a server that does not name the types of its questions. f returns
// the content, a JSON object that fits the question's schema, or ErrDeclined or ErrDismissed to refuse. It may be
// called concurrently.
func AnswerAny(f func(context.Context, Question) (json.RawMessage, error)) Answerer {
	return Answerer{[]inputAnswerer{{answer: func(ctx context.Context, q Question) (any, error) { return f(ctx, q) }}}}
}

// Answers joins answerers. The first one that fits a question answers it.
func Answers(answerers ...Answerer) Answerer {
	var joined Answerer
	for _, a := range answerers {
		joined.answerers = append(joined.answerers, a.answerers...)
	}
	return joined
}

// Empty reports whether the Answerer answers nothing.
func (a Answerer) Empty() bool { return len(a.answerers) == 0 }

// Answer answers one question with the response to its request. ok is false if
// no answerer fits. err is a failure of the function that answers.
func (a Answerer) Answer(ctx context.Context, q Question) (response json.RawMessage, ok bool, err error) {
	for _, candidate := range a.answerers {
		if !candidate.fitsQuestion(q) {
			continue
		}
		given, err := candidate.answer(ctx, q)
		if err != nil {
			return Agreed(err)
		}
		content, err := value.Marshal(given)
		if err != nil {
			return nil, true, fmt.Errorf("mcptask: encode the answer: %w", err)
		}
		return json.RawMessage(`{"action":"accept","content":` + string(content) + `}`), true, nil
	}
	return nil, false, nil
}

// fitsQuestion compares the name of the type if the server gives one, and the
// schemas otherwise.
func (a inputAnswerer) fitsQuestion(q Question) bool {
	if q.Method != spec.Elicit || q.URL != "" {
		return false
	}
	if a.input.Name == "" {
		return true
	}
	if q.Input != "" {
		return q.Input == a.input.Name
	}
	var theirs, ours any
	return json.Unmarshal(q.Schema, &theirs) == nil &&
		json.Unmarshal([]byte(a.input.Schema), &ours) == nil &&
		reflect.DeepEqual(theirs, ours)
}
