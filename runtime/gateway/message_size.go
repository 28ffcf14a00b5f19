package gateway

import (
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

const (
	// maxLastingBytes limits the bytes of a message. The arguments of calls and the answers to questions
	// have their own limit, and nothing else has a reason to be longer. Some messages stay in memory for
	// long: the SDK keeps an initialize with its session, and a request may wait for tasks. The SDK
	// decodes others, such as notifications, after their sender has the answer.
	maxLastingBytes = 64 << 10
	// maxInitializeValues limits the values in an initialize. Even the smallest value becomes a
	// map or a struct fifty times its size.
	maxInitializeValues = 1000
	// maxLastingValues limits the values in any other message, beside the arguments of calls and the
	// answers to questions. The index entry of a member takes eighty bytes, and the smallest member
	// has five.
	maxLastingValues = 2000
	// maxMembers limits the members of each object that the gateway indexes: a message, its params and their
	// _meta.
	maxMembers = 10_000
	// maxProgressToken limits the bytes of a progress token, which stays in memory until its task
	// ends.
	maxProgressToken = 1 << 10
)

// checkMembers refuses a message with so many members that its index would be many times its size.
func checkMembers(object *wire.Object, what string) *mcptask.Error {
	if raw := object.Raw(); len(raw) > 4*maxMembers && wire.CountMembers(raw, maxMembers) > maxMembers { // a member has four bytes
		return mcptask.Errorf(mcptask.CodeInvalidRequest, "the %s has more than %d members: send less", what, maxMembers)
	}
	return nil
}

// checkSize refuses a request or a notification that would hold too much memory as long as its session
// or its wait lasts, or until the SDK has decoded it. The number of such messages is limited, so this
// limits the memory of all of them.
func (g *Gateway) checkSize(m *message) (refusalKind, *mcptask.Error) {
	data := m.Bytes()
	size, beside := len(data), ""
	if len(data) <= 2*maxInitializeValues && len(m.progressToken()) <= maxProgressToken { // each value has two bytes
		return 0, nil
	}
	what := "a request of " + wire.ShortenName(m.Method)
	switch {
	case !m.IsRequest():
		what = "a notification"
	case m.Method == "initialize":
		what = "an initialize"
		if wire.CountValues(data, maxInitializeValues) > maxInitializeValues {
			return refusedSize, mcptask.Errorf(mcptask.CodeInvalidRequest, "an initialize may have at most %d values: declare less", maxInitializeValues)
		}
	case m.Method == "tools/call":
		what = "a call"
	}
	if limited := limitedParams[m.Method]; limited != nil {
		size, beside = size-countBytes(m.Params, limited), " beside its arguments and answers"
	}
	if strings.HasPrefix(m.Method, "tasks/") { // a name that is too long gets the same error as any unknown one
		size -= countTexts(m.Params, "taskId", "cursor")
	}
	switch {
	case size > maxLastingBytes:
		return refusedSize, mcptask.Errorf(mcptask.CodeInvalidRequest, "%s exceeds %d bytes%s: send less", what, maxLastingBytes, beside)
	case len(m.progressToken()) > maxProgressToken && isLongToken(m):
		return refusedRequest, mcptask.Errorf(mcptask.CodeInvalidParams, "the progress token exceeds %d bytes: choose a shorter one", maxProgressToken)
	case size > 2*maxLastingValues && countLastingValues(m) > maxLastingValues: // each value has two bytes
		return refusedSize, mcptask.Errorf(mcptask.CodeInvalidRequest, "%s has more than %d values%s: send less", what, maxLastingValues, beside)
	}
	return 0, nil
}

// isLongToken reports whether the progress token of a request is too long.
func isLongToken(m *message) bool {
	token, isText := wire.Text(m.progressToken())
	return !isText || len(token) > maxProgressToken
}

// limitedParams are the params that Limits.Arguments limits, by method.
var limitedParams = map[string][]string{
	"tools/call":   {"arguments", "inputResponses", "requestState"},
	"tasks/update": {"inputResponses"},
}

// countLastingValues counts the values in a message, without those params.
func countLastingValues(m *message) int {
	count := wire.CountValues(m.Bytes(), len(m.Bytes()))
	for _, name := range limitedParams[m.Method] {
		value := m.Params.Get(name)
		count -= wire.CountValues(value, len(value))
	}
	return count
}

// countBytes returns how many bytes the params with these names have.
func countBytes(params *wire.Object, names []string) (size int) {
	for _, name := range names {
		size += len(params.Get(name))
	}
	return size
}

// countTexts returns how many bytes the strings among the params with these names have.
func countTexts(params *wire.Object, names ...string) (size int) {
	for _, name := range names {
		text, _ := params.Text(name)
		size += len(text)
	}
	return size
}
