package push

import (
	"strconv"
	"strings"
)

// RequestID says which question a request of the server's is about. The ID of the
// request is its text, so an answer may reach any process that shares the store.
type RequestID struct {
	kind requestKind
	// serial tells the follow-ups of this process apart: no ID is used twice in a
	// session. It is 0 for a question that is asked for the first time.
	serial    uint64
	task, key string
}

// requestKind is what a request of the server's asks for.
type requestKind string

const (
	// The question itself: mcptask/TASK/KEY.
	kindQuestion requestKind = ""
	// The follow-ups, if the client has made a task of the question. They have IDs of
	// the form mcptask:KIND:SERIAL/TASK/KEY.
	kindGet    requestKind = "get"
	kindResult requestKind = "result"
	kindCancel requestKind = "cancel"
	// The question once more, after the client has lost its task.
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

// ParseRequestID reads the ID of a response. It returns false if the request was not
// one of the server's own. A key is what a handler calls its step: it may hold anything.
func ParseRequestID(id string) (r RequestID, ok bool) {
	head, rest, ok := strings.Cut(id, "/")
	if !ok {
		return r, false
	}
	if r.task, r.key, ok = strings.Cut(rest, "/"); !ok {
		return RequestID{}, false
	}
	if head != requestPrefix {
		kind, serial, _ := strings.Cut(strings.TrimPrefix(head, requestPrefix+":"), ":")
		n, err := strconv.ParseUint(serial, 10, 64)
		switch r.kind = requestKind(kind); {
		case err != nil:
			return RequestID{}, false
		case r.kind != kindGet && r.kind != kindResult && r.kind != kindCancel && r.kind != kindAgain:
			return RequestID{}, false
		}
		r.serial = n
	}
	return r, r.String() == id
}
