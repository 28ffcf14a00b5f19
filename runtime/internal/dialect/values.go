package dialect

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect/wire20251125"
)

// timestamp is RFC 3339 in UTC.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// milliseconds rounds up, so that a duration never becomes none.
func milliseconds(d time.Duration) *int64 {
	ms := int64((d + time.Millisecond - 1) / time.Millisecond)
	return &ms
}

func compare(a, b string) int { return cmp.Compare(a, b) }

// malformed is the error for a peer's message that does not keep its revision.
func malformed(method string, err error) error {
	return fmt.Errorf("mcptask: the server's answer to %s is malformed: %w", method, err)
}

// callParams are the params of a tools/call that all revisions share.
func callParams(call mcptask.ToolCall) map[string]any {
	params := map[string]any{"name": call.Tool, "arguments": call.Arguments}
	if call.IdempotencyKey != "" {
		params["_meta"] = map[string]any{mcptask.MetaIdempotencyKey: call.IdempotencyKey}
	}
	return params
}

// wireTask is what all revisions say of a task.
type wireTask struct {
	id, status, message, created, updated string
	ttl, poll                             *int64
}

// newSnapshot reads a task. An unknown status is an error: the set is closed.
func newSnapshot(t wireTask) (mcptask.Snapshot, error) {
	status := mcptask.Status(t.status)
	switch status {
	case mcptask.StatusWorking, mcptask.StatusInputRequired, mcptask.StatusCompleted, mcptask.StatusFailed, mcptask.StatusCancelled:
	default:
		return mcptask.Snapshot{}, fmt.Errorf("mcptask: the server sent the unknown task status %q", t.status)
	}
	if t.id == "" {
		return mcptask.Snapshot{}, errors.New("mcptask: the server sent a task without an ID")
	}
	s := mcptask.Snapshot{
		TaskID: t.id, Status: status, Message: t.message,
		CreatedAt: parseTime(t.created), UpdatedAt: parseTime(t.updated), TTL: -1,
	}
	if t.ttl != nil && *t.ttl >= 0 {
		s.TTL = duration(*t.ttl)
	}
	if t.poll != nil && *t.poll > 0 {
		s.Poll = duration(*t.poll)
	}
	return s, nil
}

// parseTime is lenient: peers write ISO 8601 in several ways, and a time that
// cannot be read is only missing.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

// duration is a number of milliseconds, cut to what a Duration holds.
func duration(ms int64) time.Duration {
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(ms, longest)) * time.Millisecond
}

// finished is the snapshot of a call that was answered at once.
func finished(result json.RawMessage) (mcptask.Snapshot, error) {
	return withOutcome(mcptask.Snapshot{Status: mcptask.StatusCompleted, TTL: -1}, result, nil)
}

// withOutcome adds the result of a call, or the error that it ended with.
func withOutcome(s mcptask.Snapshot, result json.RawMessage, err error) (mcptask.Snapshot, error) {
	var wire *mcptask.Error
	switch {
	case errors.As(err, &wire):
		s.Error = wire
		return s, nil
	case err != nil:
		return s, err
	}
	s.Result = new(mcptask.Result)
	if err := json.Unmarshal(result, s.Result); err != nil {
		return s, malformed("tools/call", err)
	}
	return s, nil
}

// started is the snapshot of a call that was answered with a result: the one of
// a task where the result only tells of it, because the call did not ask for
// one.
func started(result json.RawMessage) (mcptask.Snapshot, error) {
	var r struct {
		Meta struct {
			Task *wire20251125.Task `json:"io.github.mcptaskgen/task"`
		} `json:"_meta"`
	}
	if json.Unmarshal(result, &r) == nil && r.Meta.Task != nil {
		return snapshot20251125(*r.Meta.Task)
	}
	return finished(result)
}

// Described is a task for the _meta of a result that only tells of it.
func Described(r mcptask.Record) (json.RawMessage, error) { return json.Marshal(task20251125(r)) }

// MetaTask is the key of Described.
const MetaTask = "io.github.mcptaskgen/task"

// cursor is a place in a principal's list. It is bound to the principal and
// carries a checksum, so that a made-up or borrowed one is refused (C-82); it
// grants nothing, since a list only ever has the caller's own tasks.
type cursor struct {
	At int64  `json:"t"`
	ID string `json:"i"`
}

const checksumLen = 12

func cursorSum(principal string, data []byte) []byte {
	sum := sha256.Sum256(append([]byte(principal+"\x00"), data...))
	return sum[:checksumLen]
}

func newCursor(principal string, p mcptask.Position) string {
	data, err := json.Marshal(cursor{p.CreatedAt.UnixNano(), p.ID})
	if err != nil { // a number and a string always marshal
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(cursorSum(principal, data), data...))
}

func parseCursor(principal, text string) (mcptask.Position, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	var c cursor
	// Decoding forgives line breaks and spare bits: a cursor of ours has none.
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != text || len(raw) < checksumLen || !bytes.Equal(raw[:checksumLen], cursorSum(principal, raw[checksumLen:])) ||
		json.Unmarshal(raw[checksumLen:], &c) != nil {
		return mcptask.Position{}, mcptask.Errorf(mcptask.CodeInvalidParams, "the cursor is not one of ours")
	}
	return mcptask.Position{CreatedAt: time.Unix(0, c.At).UTC(), ID: c.ID}, nil
}
