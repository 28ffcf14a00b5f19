package protocol

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// FormatTime is RFC 3339 in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// RoundMilliseconds rounds up, so that a duration never becomes none.
func RoundMilliseconds(d time.Duration) *int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return &ms
}

// ProjectLifetime is how long a task is kept in milliseconds, counted from its creation;
// nil is as long as it takes, and what is known once it has ended.
func ProjectLifetime(r mcptask.Record) *int64 {
	if r.Keep > 0 && !r.Done() {
		return nil
	}
	return RoundMilliseconds(r.TTL())
}

// ReadMilliseconds reads a member of an object that is a whole number of
// milliseconds, nil where there is none. What no duration can hold is cut to the
// longest.
func ReadMilliseconds(members object, name, where string) (*time.Duration, error) {
	raw, ok := members[name]
	if !ok {
		return nil, nil
	}
	var ms *float64
	if json.Unmarshal(raw, &ms) != nil || ms == nil || *ms < 0 || *ms != math.Trunc(*ms) {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "%s.%s is not a whole number of milliseconds, 0 or more", where, name)
	}
	longest := float64(math.MaxInt64 / int64(time.Millisecond))
	d := time.Duration(math.MaxInt64)
	if *ms < longest {
		d = time.Duration(*ms) * time.Millisecond
	}
	return &d, nil
}

// WithMeta adds to an object's _meta, in the place of what is there under the same
// keys.
func WithMeta(data json.RawMessage, add map[string]any) (json.RawMessage, error) {
	if len(add) == 0 {
		return data, nil
	}
	return EditObject(data, func(o object) error {
		meta := object{}
		if o["_meta"] != nil {
			if err := json.Unmarshal(o["_meta"], &meta); err != nil {
				return err
			}
		}
		if meta == nil { // it was null
			meta = object{}
		}
		for key, value := range add {
			encoded, err := json.Marshal(value)
			if err != nil {
				return err
			}
			meta[key] = encoded
		}
		var err error
		o["_meta"], err = json.Marshal(meta)
		return err
	})
}

// ShortenMessage cuts a status message, which every poll and every list carries.
func ShortenMessage(text string) string {
	const longest = 1024
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "..."
}

// AuditRetrieval tells the audit trail that a caller is handed a task's result
// (C-102). It costs nothing where the logger takes no debug records.
func AuditRetrieval(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, r mcptask.Record) {
	if s.Logger().Enabled(ctx, slog.LevelDebug) {
		s.Audit(slog.LevelDebug, "result retrieved", "retrieved", caller, r)
	}
}

// NewMalformedError is the error for a peer's message that does not keep its revision.
func NewMalformedError(method string, err error) error {
	return fmt.Errorf("mcptask: the server's answer to %s is malformed: %w", method, err)
}

// MakeCallParams are the params of a tools/call that all revisions share.
func MakeCallParams(call mcptask.ToolCall) map[string]any {
	params := map[string]any{"name": call.Tool, "arguments": call.Arguments}
	if call.IdempotencyKey != "" {
		params["_meta"] = map[string]any{mcptask.MetaIdempotencyKey: call.IdempotencyKey}
	}
	return params
}

// maxTaskID bounds a peer's task ID in bytes: it goes into a token, and into the
// header of requests.
const maxTaskID = 4 << 10

// NewSnapshot reads a task; ttl and poll are under the names of its revision. An
// unknown status is an error: the set is closed.
func NewSnapshot(t PeerTask, ttl, poll Millis) (mcptask.Snapshot, error) {
	status := mcptask.Status(t.Status)
	switch status {
	case mcptask.StatusWorking, mcptask.StatusInputRequired, mcptask.StatusCompleted, mcptask.StatusFailed, mcptask.StatusCancelled:
	default:
		return mcptask.Snapshot{}, fmt.Errorf("mcptask: the peer sent the unknown task status %q", ShortenMessage(t.Status))
	}
	switch {
	case t.TaskID == "":
		return mcptask.Snapshot{}, errors.New("mcptask: the peer sent a task without an ID")
	case len(t.TaskID) > maxTaskID:
		return mcptask.Snapshot{}, fmt.Errorf("mcptask: the peer sent a task with an ID of %d bytes: at most %d are taken", len(t.TaskID), maxTaskID)
	}
	s := mcptask.Snapshot{
		TaskID: t.TaskID, Status: status, Message: t.StatusMessage,
		CreatedAt: parseTime(t.CreatedAt), UpdatedAt: parseTime(t.LastUpdatedAt), TTL: -1,
	}
	if ttl.set && ttl.N >= 0 {
		s.TTL = toDuration(ttl.N)
	}
	if poll.set && poll.N > 0 {
		s.Poll = toDuration(poll.N)
	}
	return s, nil
}

// CheckTaskID refuses the state of another task than the one that was asked for.
func CheckTaskID(s mcptask.Snapshot, taskID string) error {
	if s.TaskID == taskID {
		return nil
	}
	return NewMalformedError("tasks/get", fmt.Errorf("the state of the task %q instead of %q", s.TaskID, taskID))
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

// toDuration is a number of milliseconds, cut to what a Duration holds.
func toDuration(ms int64) time.Duration {
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(ms, longest)) * time.Millisecond
}

// newFinishedSnapshot is the snapshot of a call that was answered at once.
func newFinishedSnapshot(result json.RawMessage) (mcptask.Snapshot, error) {
	return AddOutcome(mcptask.Snapshot{Status: mcptask.StatusCompleted, TTL: -1}, result, nil)
}

// AddOutcome adds the result of a call, or the error that it ended with.
func AddOutcome(s mcptask.Snapshot, result json.RawMessage, err error) (mcptask.Snapshot, error) {
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
		return s, NewMalformedError("tools/call", err)
	}
	return s, nil
}

// ReadStarted is the snapshot of a call that was answered with a result: the one of
// a task where the result only tells of it, because the call did not ask for
// one.
func ReadStarted(result json.RawMessage) (mcptask.Snapshot, error) {
	var r struct {
		Meta struct {
			Task *PeerTask `json:"io.github.mcptaskgen/task"`
		} `json:"_meta"`
	}
	if json.Unmarshal(result, &r) == nil && r.Meta.Task != nil {
		return newSnapshot20251125(*r.Meta.Task)
	}
	return newFinishedSnapshot(result)
}

// DescribeTask is a task for the _meta of a result that only tells of it.
func DescribeTask(r mcptask.Record) (json.RawMessage, error) {
	return json.Marshal(ProjectTask20251125(r))
}

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

func sumCursor(principal string, data []byte) []byte {
	sum := sha256.Sum256(append([]byte(principal+"\x00"), data...))
	return sum[:checksumLen]
}

func newCursor(principal string, p mcptask.Position) string {
	data, err := json.Marshal(cursor{p.CreatedAt.UnixNano(), p.ID})
	if err != nil { // a number and a string always marshal
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(sumCursor(principal, data), data...))
}

func parseCursor(principal, text string) (mcptask.Position, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	var c cursor
	// Decoding forgives line breaks and spare bits: a cursor of ours has none.
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != text || len(raw) < checksumLen || !bytes.Equal(raw[:checksumLen], sumCursor(principal, raw[checksumLen:])) ||
		json.Unmarshal(raw[checksumLen:], &c) != nil {
		return mcptask.Position{}, mcptask.Errorf(mcptask.CodeInvalidParams, "the cursor is not one of ours")
	}
	return mcptask.Position{CreatedAt: time.Unix(0, c.At).UTC(), ID: c.ID}, nil
}
