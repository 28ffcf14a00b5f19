package gateway

import (
	"strconv"
	"strings"
)

// requestRef is what the ID of a request of ours says by itself: which
// question it is about, so that an answer may reach any process that shares the
// store.
type requestRef struct {
	kind requestKind
	// serial tells the follow-ups of this process apart: no ID is used twice in a
	// session. It is 0 for a question that is asked for the first time.
	serial    uint64
	task, key string
}

// requestKind is what a request of ours asks for.
type requestKind string

const (
	// The question itself: mcptask/TASK/KEY.
	kindQuestion requestKind = ""
	// What follows where the client has made a task of it: mcptask:KIND:SERIAL/TASK/KEY.
	kindGet    requestKind = "get"
	kindResult requestKind = "result"
	kindCancel requestKind = "cancel"
	// The question once more, after the client has lost its task.
	kindAgain requestKind = "again"
)

const requestPrefix = "mcptask"

func (r requestRef) String() string {
	if r.kind == kindQuestion {
		return requestPrefix + "/" + r.task + "/" + r.key
	}
	return requestPrefix + ":" + string(r.kind) + ":" + strconv.FormatUint(r.serial, 10) + "/" + r.task + "/" + r.key
}

// parseRequestID reads an ID; ok is false for those that are not ours. A key is
// what a handler calls its step: it may hold anything.
func parseRequestID(id string) (r requestRef, ok bool) {
	head, rest, ok := strings.Cut(id, "/")
	if !ok {
		return r, false
	}
	if r.task, r.key, ok = strings.Cut(rest, "/"); !ok {
		return requestRef{}, false
	}
	if head != requestPrefix {
		kind, serial, _ := strings.Cut(strings.TrimPrefix(head, requestPrefix+":"), ":")
		n, err := strconv.ParseUint(serial, 10, 64)
		switch r.kind = requestKind(kind); {
		case err != nil:
			return requestRef{}, false
		case r.kind != kindGet && r.kind != kindResult && r.kind != kindCancel && r.kind != kindAgain:
			return requestRef{}, false
		}
		r.serial = n
	}
	return r, r.String() == id
}
