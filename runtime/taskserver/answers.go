package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// requiredCapability names the capability that the requestor needs to answer the
// question.
func requiredCapability(in mcptask.Request) string {
	if in.Method == spec.Elicit && in.Schema == nil {
		return CanAskURL
	}
	return in.Method
}

// hasSeveralBlocks reports whether a request asks a model about a message of several blocks.
func hasSeveralBlocks(in mcptask.Request) bool {
	if in.Method != spec.Sample {
		return false
	}
	request, err := value.Decode[mcptask.SampleRequest](in.Params)
	return err == nil && slices.ContainsFunc(request.Messages, func(m mcptask.SampleMessage) bool { return len(m.Content) > 1 })
}

// explainFailure returns the handler's error for a question that the requestor has answered with a JSON-RPC error. A
// code outside of the range that JSON-RPC reserves is a refusal. SDKs check the answers that they send, and report a
// wrong one as invalid params. A client without the URL mode reports that with the same code. The result has only the
// text of failed: a handler may return it, and the task must not end with the requestor's own error.
func explainFailure(in mcptask.Request, failed *mcptask.Error) error {
	const lowestReserved, highestReserved = -32768, -32000
	kind := mcptask.ErrCannotAsk
	switch {
	case failed.Code < lowestReserved || failed.Code > highestReserved && failed.Code != 0: // 0 may mean that there is no code
		kind = mcptask.ErrDeclined
	case failed.Code == mcptask.CodeInvalidParams && requiredCapability(in) != CanAskURL:
		kind = mcptask.ErrInvalidAnswer
	}
	text := failed.Error()
	if errors.Is(kind, mcptask.ErrInvalidAnswer) { // the client of this module begins the same way
		text = strings.TrimPrefix(text, mcptask.ErrInvalidAnswer.Error()+": ")
	}
	return fmt.Errorf("%w: %s", kind, text)
}

// explainFailures returns a function that asks as ask does, and returns the handler's errors for the requestor's. ask
// may be nil.
func explainFailures(ask askFunc) askFunc {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, in mcptask.Request) (json.RawMessage, error) {
		response, err := ask(ctx, in)
		if failed := (*mcptask.Error)(nil); errors.As(err, &failed) {
			err = explainFailure(in, failed)
		}
		return response, err
	}
}

type askFunc = func(context.Context, mcptask.Request) (json.RawMessage, error)

// keepAnswer returns the members of a response that the server reads. It leaves out all others, and content that no
// schema has checked. It returns a response that does not fit its request unchanged.
func keepAnswer(in mcptask.Request, response json.RawMessage) json.RawMessage {
	var kept json.RawMessage
	var err error
	switch in.Method {
	case spec.Elicit:
		kept, err = recode(response, func(r *elicitAnswer) {
			if r.Action != "accept" || in.Schema == nil {
				r.Content = nil
			}
		})
	case spec.Sample:
		kept, err = recode(response, func(*mcptask.SampleResult) {})
	case spec.Roots:
		kept, err = recode(response, func(*rootsAnswer) {})
	default:
		return response
	}
	if err != nil {
		return response
	}
	return kept
}

// recode decodes a JSON text, changes it and encodes it again.
func recode[T any](text json.RawMessage, change func(*T)) (json.RawMessage, error) {
	v, err := value.Decode[T](text)
	if err != nil {
		return nil, err
	}
	change(&v)
	return value.Marshal(v)
}

// elicitAnswer is a result of elicitation/create.
type elicitAnswer struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// rootsAnswer is a result of roots/list.
type rootsAnswer struct {
	Roots []mcptask.Root `json:"roots"`
}
