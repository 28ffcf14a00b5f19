package push

import (
	"strconv"
	"strings"
)

// RequestID identifies the question that a request of the server is about. Its text is the ID of
// the request, so every process that shares the store can take the answer.
type RequestID struct {
	kind requestKind
	// serial distinguishes the follow-up requests of this process, so that no ID is used twice in a
	// session. It is 0 when a question is first asked.
	serial    uint64
	task, key string
}

// requestKind is the purpose of a request of the server.
type requestKind string

const (
	// The question itself: mcptask/TASK/KEY.
	kindQuestion requestKind = ""
	// These are follow-ups about a question that the client keeps as a task. Their IDs look like
	// this: mcptask:KIND:SERIAL/TASK/KEY.
	kindGet    requestKind = "get"
	kindResult requestKind = "result"
	kindCancel requestKind = "cancel"
	// The question again, after the client has lost its task.
	kindAgain requestKind = "again"
)

const requestPrefix = "mcptask"

// String returns the ID as it is sent.
func (r RequestID) String() string {
	if r.kind == kindQuestion {
		return requestPrefix + "/" + r.task + "/" + r.key
	}
	return requestPrefix + ":" + string(r.kind) + ":" + strconv.FormatUint(r.serial, 10) + "/" + r.task + "/" + r.key
}

// ParseRequestID parses the ID of a response. It returns false if the server has not sent the
// request. The key may contain any character, because handlers choose it.
func ParseRequestID(id string) (r RequestID, ok bool) {
	head, rest, _ := strings.Cut(id, "/")
	r.task, r.key, _ = strings.Cut(rest, "/")
	if head != requestPrefix {
		kind, serial, _ := strings.Cut(strings.TrimPrefix(head, requestPrefix+":"), ":")
		switch r.kind = requestKind(kind); r.kind {
		case kindGet, kindResult, kindCancel, kindAgain:
		default:
			return r, false
		}
		r.serial, _ = strconv.ParseUint(serial, 10, 64)
	}
	return r, r.String() == id // false if a part is missing or is no number
}
