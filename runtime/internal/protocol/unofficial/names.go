package unofficial

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// nameTask returns the ID by which the requestor of a task calls it.
func nameTask(r taskstore.Record) string {
	if r.ExternalID != "" {
		return r.ExternalID
	}
	return r.ID
}

// nameTaskFor returns the ID by which a caller can call a task. That is the requestor's own name for
// it if the caller is the requestor, and the stored ID otherwise.
func nameTaskFor(caller taskserver.Caller, r taskstore.Record) string {
	if name := nameTask(r); caller.Named(name) == r.ID {
		return name
	}
	return r.ID
}

// resolveTaskID returns the stored ID of the task that a caller calls by an ID. A name that the
// caller made itself goes first.
func resolveTaskID(s *taskserver.Backend, caller taskserver.Caller, id string) string {
	if hasNamed(s, caller, id) {
		return caller.Named(id)
	}
	return id
}

// hasNamed reports whether a caller has a task that it calls by an ID of its own making. It also
// returns true if the store fails, since there may be one.
func hasNamed(s *taskserver.Backend, caller taskserver.Caller, id string) bool {
	_, err := s.Peek(caller.Named(id))
	return !errors.Is(err, taskstore.ErrNoRecord)
}

// makeTaskID makes a task ID from parts. The same parts always make the same ID, and no others do.
func makeTaskID(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(append([]byte(part), 0))
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}
