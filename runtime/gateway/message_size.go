package gateway

import (
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

const (
	// maxLastingBytes limits the bytes of a message that stays in memory for long. Such messages
	// are an initialize, which the SDK keeps with its session, and a request that waits for tasks.
	// In a call, it limits the bytes outside of its arguments and answers, which have their own
	// limit.
	maxLastingBytes = 64 << 10
	// maxInitializeValues limits the values in an initialize. Even the smallest value becomes a
	// map or a struct fifty times its size.
	maxInitializeValues = 1000
	// maxLastingValues limits the values in any other such message. In a call, it limits those
	// outside of its arguments and answers. The index entry of a member takes eighty bytes, and the
	// smallest member has five.
	maxLastingValues = 2000
	// maxProgressToken limits the bytes of a progress token, which stays in memory until its task
	// ends.
	maxProgressToken = 1 << 10
)

// checkSize refuses a message that would hold too much memory as long as its session or its wait
// lasts. The number of such messages is limited, so this limits the memory of all of them.
func (g *Gateway) checkSize(m *message) (refusalKind, *mcptask.Error) {
	data := m.Bytes()
	size, what, beside := len(data), "an initialize", ""
	switch m.Method {
	case "initialize":
		if wire.CountValues(data, maxInitializeValues) > maxInitializeValues {
			return refusedSize, mcptask.Errorf(mcptask.CodeInvalidRequest, "an initialize may have at most %d values: declare less", maxInitializeValues)
		}
	case "tasks/result", protocol.Listen:
		what = "a request of " + m.Method
	case "tools/call":
		size, what, beside = size-countLimitedBytes(m.Params), "a call", " beside its arguments and answers"
	default:
		return 0, nil
	}
	switch {
	case size > maxLastingBytes && m.Method != "tools/call" && isLongID(m): // the same error as for any unknown ID
		return refusedRequest, g.server.NotFound()
	case size > maxLastingBytes:
		return refusedSize, mcptask.Errorf(mcptask.CodeInvalidRequest, "%s exceeds %d bytes%s: send less", what, maxLastingBytes, beside)
	case len(m.progressToken()) > maxProgressToken && isLongToken(m):
		return refusedRequest, mcptask.Errorf(mcptask.CodeInvalidParams, "the progress token exceeds %d bytes: choose a shorter one", maxProgressToken)
	case m.Method != "initialize" && size > 2*maxLastingValues && countLastingValues(m) > maxLastingValues: // each value has two bytes
		return refusedSize, mcptask.Errorf(mcptask.CodeInvalidRequest, "%s has more than %d values%s: send less", what, maxLastingValues, beside)
	}
	return 0, nil
}

// isLongID reports whether a request names its task by an ID that is too long to exist.
func isLongID(m *message) bool {
	id, _ := m.Params.Text("taskId")
	return len(id) > maxLastingBytes
}

// isLongToken reports whether the progress token of a request is too long.
func isLongToken(m *message) bool {
	token, isText := wire.Text(m.progressToken())
	return !isText || len(token) > maxProgressToken
}

// limitedParams are the params of a call that Limits.Arguments limits.
var limitedParams = []string{"arguments", "inputResponses", "requestState"}

// countLastingValues counts the values in a message. In a call, it leaves out those params.
func countLastingValues(m *message) int {
	count := wire.CountValues(m.Bytes(), len(m.Bytes()))
	if m.Method != "tools/call" {
		return count
	}
	for _, name := range limitedParams {
		value := m.Params.Get(name)
		count -= wire.CountValues(value, len(value))
	}
	return count
}

// countLimitedBytes returns how many bytes of a call's params Limits.Arguments limits.
func countLimitedBytes(params *wire.Object) (size int) {
	for _, name := range limitedParams {
		size += len(params.Get(name))
	}
	return size
}
