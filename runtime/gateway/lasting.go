package gateway

import (
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
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
func checkLasting(m *message, data []byte) *mcptask.Error {
	switch m.Method {
	case "initialize":
		if countValues(data, mostInitializeValues) > mostInitializeValues {
			return mcptask.Errorf(mcptask.CodeInvalidRequest, "an initialize of more than %d values is not taken: declare less", mostInitializeValues)
		}
	case "tasks/result", dialect.Listen:
	case "tools/call":
		if len(data) > mostLasting && len(data)-limitedBytes(m.Params) > mostLasting {
			return mcptask.Errorf(mcptask.CodeInvalidRequest, "a call exceeds %d bytes beside its arguments and answers: send less", mostLasting)
		}
		return nil
	default:
		return nil
	}
	switch {
	case len(data) <= mostLasting:
		return nil
	case len(m.task()) > mostLasting: // as of any ID that nobody has
		return mcptask.Errorf(mcptask.CodeInvalidParams, "there is no task with that ID")
	}
	return mcptask.Errorf(mcptask.CodeInvalidRequest, "a request of %s exceeds %d bytes: send less", m.Method, mostLasting)
}

// limitedBytes counts the bytes of a call's params that Limits.Arguments bounds.
func limitedBytes(params json.RawMessage) int {
	all, _ := members(params, nil)
	return len(all["arguments"]) + len(all["inputResponses"]) + len(all["requestState"])
}

// countValues counts the values in valid JSON, up to one more than most. Each but the first follows a comma
// or is the first in an object or array. An empty one counts as if there were a value in it.
func countValues(data []byte, most int) int {
	count := 1
	for i := 0; i < len(data) && count <= most; i++ {
		switch data[i] {
		case '"':
			i = text(data, i) - 1
		case ',', '{', '[':
			count++
		}
	}
	return count
}
