package gateway

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

const (
	// parentLength is the length of a traceparent of version 00.
	parentLength = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-00")

	// maxTraceState and maxStateMembers bound a tracestate, in bytes and in members. W3C Trace Context
	// asks everyone to pass on as much.
	maxTraceState   = 512
	maxStateMembers = 32
	// maxStateMember bounds the key of a member, and its value, in bytes.
	maxStateMember = 256
)

var (
	// traceParent matches a traceparent. Versions after 00 may add fields; ff is none.
	traceParent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)`)
	// stateMember matches a member of a tracestate without the spaces around it, of any length. A length in the expression
	// would take each start of the process a third of a megabyte.
	stateMember = regexp.MustCompile(`^[a-z0-9][a-z0-9_*/@-]*=[ -+\--<>-~]*[!-+\--<>-~]$`)
)

// readTrace returns the trace that a request names in its _meta, in the form of a Record, or "".
func (m *message) readTrace() string {
	parent, _ := m.Params.Text("_meta", "traceparent")
	state, _ := m.Params.Text("_meta", "tracestate")
	return checkTrace(parent, state)
}

// readTraceHeaders returns the trace that the headers of a request name, in the form of a Record, or "".
func readTraceHeaders(h http.Header) string {
	parents := h["Traceparent"]
	if len(parents) != 1 { // of several, none is known to be the right one
		return ""
	}
	return checkTrace(parents[0], strings.Join(h["Tracestate"], ","))
}

// checkTrace returns a W3C trace context of a requestor in the form of a Record. It returns "" if parent is malformed, and
// leaves out a malformed state.
func checkTrace(parent, state string) string {
	return taskserver.FormatTrace(checkParent(parent), checkState(state))
}

// checkParent returns a traceparent in version 00, with the flags of that version, or "" if it is malformed.
func checkParent(parent string) string {
	found := traceParent.FindStringSubmatch(parent)
	if found == nil {
		return ""
	}
	version, trace, span := found[1], found[2], found[3]
	switch {
	case version == "ff", version == "00" && len(parent) != parentLength:
		return ""
	case strings.Trim(trace, "0") == "", strings.Trim(span, "0") == "":
		return ""
	}
	const sampled, random = 1, 2
	flags, _ := strconv.ParseUint(found[4], 16, 8) // the expression has found two digits
	return fmt.Sprintf("00-%s-%s-%02x", trace, span, flags&(sampled|random))
}

// checkState returns a tracestate without the spaces around its members, or "" if it is malformed or too long.
func checkState(state string) string {
	if len(state) > maxTraceState {
		return ""
	}
	var members []string
	for each := range strings.SplitSeq(state, ",") {
		switch each = strings.Trim(each, " \t"); {
		case each == "":
		case !isStateMember(each), len(members) == maxStateMembers:
			return ""
		default:
			members = append(members, each)
		}
	}
	return strings.Join(members, ",")
}

// isStateMember reports whether s is a member of a tracestate without the spaces around it.
func isStateMember(s string) bool {
	key, value, _ := strings.Cut(s, "=")
	return len(key) <= maxStateMember && len(value) <= maxStateMember && stateMember.MatchString(s)
}
