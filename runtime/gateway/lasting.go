package gateway

import (
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

const (
	// mostLasting bounds the bytes of a message that stays in memory for long: an initialize, which
	// the SDK keeps with its session, a request that waits for tasks, and what a call has beside
	// its arguments and answers, which have a limit of their own.
	mostLasting = 64 << 10
	// mostInitializeValues bounds the values in an initialize: the smallest of them becomes
	// a map or a struct, fifty times as big.
	mostInitializeValues = 1000
)

// checkLasting refuses a message that would keep more than its share of memory for as long as its
// session or its wait. How many of them there may be is bounded, so this bounds what all of them take.
func checkLasting(m *message) (refusalKind, *mcptask.Error) {
	data := m.Bytes()
	switch m.Method {
	case "initialize":
		if wire.CountValues(data, mostInitializeValues) > mostInitializeValues {
			return refusedSize, mcptask.Errorf(mcptask.CodeInvalidRequest, "an initialize of more than %d values is not taken: declare less", mostInitializeValues)
		}
	case "tasks/result", dialect.Listen:
	case "tools/call":
		if len(data) > mostLasting && len(data)-limitedBytes(m.Params) > mostLasting {
			return refusedSize, mcptask.Errorf(mcptask.CodeInvalidRequest, "a call exceeds %d bytes beside its arguments and answers: send less", mostLasting)
		}
		return 0, nil
	default:
		return 0, nil
	}
	switch {
	case len(data) <= mostLasting:
		return 0, nil
	case isLongID(m): // as of any ID that nobody has
		return refusedRequest, mcptask.Errorf(mcptask.CodeInvalidParams, "there is no task with that ID")
	}
	return refusedSize, mcptask.Errorf(mcptask.CodeInvalidRequest, "a request of %s exceeds %d bytes: send less", m.Method, mostLasting)
}

// isLongID reports whether a request names its task by an ID that is too long for any.
func isLongID(m *message) bool {
	id, _ := m.Params.Text("taskId")
	return len(id) > mostLasting
}

// limitedBytes counts the bytes of a call's params that Limits.Arguments bounds.
func limitedBytes(params *wire.Object) int {
	return len(params.Get("arguments")) + len(params.Get("inputResponses")) + len(params.Get("requestState"))
}
