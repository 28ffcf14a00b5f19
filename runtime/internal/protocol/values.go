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
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// FormatTime formats a time as RFC 3339 in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// RoundMilliseconds converts a duration to milliseconds. It rounds up, so that only 0 becomes 0.
func RoundMilliseconds(d time.Duration) *int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return &ms
}

// ReadMilliseconds reads a member that is a whole number of milliseconds. It returns nil if the
// member is absent, and the longest duration for a number that no duration holds. where names the
// object in errors.
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

// WithMeta adds members to an object's _meta. They replace members of the same name.
func WithMeta(data json.RawMessage, add map[string]any) (json.RawMessage, error) {
	if len(add) == 0 {
		return data, nil
	}
	if len(data) == 0 {
		return nil, errors.New("a result without JSON has no _meta")
	}
	edits := make([]wire.Edit, 0, len(add))
	for _, key := range slices.Sorted(maps.Keys(add)) {
		encoded, err := json.Marshal(add[key])
		if err != nil {
			return nil, err
		}
		edits = append(edits, wire.Set(encoded, "_meta", key))
	}
	return wire.NewObject(data).Edited(edits...)
}

// addMember adds a member to a JSON object, unless the object has it. It takes null for an object
// without members.
func addMember(data json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(data) {
		return nil, errors.New("the result is not JSON")
	}
	o := wire.NewObject(data)
	if o.Has(name) {
		return data, nil
	}
	return o.Edited(wire.Set(value, name))
}

// ShortenMessage cuts a status message, which every poll and every list carries.
func ShortenMessage(text string) string {
	if len(text) <= longestMessage {
		return text
	}
	return strings.ToValidUTF8(text[:longestMessage], "") + "..."
}

// longestMessage bounds the bytes of a status message.
const longestMessage = 1024

// AuditRetrieval tells the audit trail that a caller gets a task's result (C-102). It costs
// nothing if the logger takes no debug records.
func AuditRetrieval(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, r taskstore.Record) {
	if s.Logger().Enabled(ctx, slog.LevelDebug) {
		s.Audit(ctx, slog.LevelDebug, "result retrieved", "retrieved", caller, r)
	}
}

// NewMalformedError makes the error for an answer of a peer that breaks the rules of its revision.
func NewMalformedError(method string, err error) error {
	return fmt.Errorf("mcptask: the server's answer to %s is malformed: %w", method, err)
}

// MakeCallParams makes the params of a tools/call that all revisions share.
func MakeCallParams(call mcptask.ToolCall) map[string]any {
	params := map[string]any{"name": call.Tool, "arguments": call.Arguments}
	meta := map[string]any{spec.MetaUnattended: true} // a program calls no fallback tools
	if call.IdempotencyKey != "" {
		meta[spec.MetaIdempotencyKey] = call.IdempotencyKey
	}
	params["_meta"] = meta
	return params
}

// maxTaskID bounds a peer's task ID in bytes: it goes into a token, and into the
// header of requests.
const maxTaskID = 4 << 10

// NewSnapshot reads a task. ttl and poll come apart, because revisions name them differently. An
// unknown status is an error, because the set is closed.
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
		Progress:  readProgress(t),
		CreatedAt: parseTime(t.CreatedAt), UpdatedAt: parseTime(t.LastUpdatedAt), TTL: -1,
	}
	s.Stale = readStale(t.Meta)
	if ttl.set && ttl.N >= 0 {
		s.TTL = toDuration(ttl.N)
	}
	if poll.set && poll.N > 0 {
		s.Poll = toDuration(poll.N)
	}
	return s, nil
}

// CheckTaskID refuses a state that is not that of the task that was asked for.
func CheckTaskID(s mcptask.Snapshot, taskID string) error {
	if s.TaskID == taskID {
		return nil
	}
	return NewMalformedError("tasks/get", fmt.Errorf("the state of the task %q instead of %q", s.TaskID, taskID))
}

// parseTime reads a time in any of the ways in which peers write ISO 8601. It returns the zero time
// if it cannot.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

// toDuration converts milliseconds. It cuts them to the range of a Duration.
func toDuration(ms int64) time.Duration {
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(ms, longest)) * time.Millisecond
}

// newFinishedSnapshot makes the snapshot of a call that was answered at once.
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

// ReadStarted makes the snapshot of a call that was answered with a result. That is the snapshot of
// a task if the result only tells of one, because the call did not ask for a task.
func ReadStarted(result json.RawMessage) (mcptask.Snapshot, error) {
	var r struct {
		Meta struct {
			Task *PeerTask `json:"io.github.mcptaskgen/task"`
		} `json:"_meta"`
	}
	if json.Unmarshal(result, &r) == nil && r.Meta.Task != nil {
		return newSnapshot20251125(*r.Meta.Task)
	}
	if err := checkToolResult(result); err != nil {
		return mcptask.Snapshot{}, NewMalformedError("tools/call", err)
	}
	return newFinishedSnapshot(result)
}

// checkToolResult returns an error for an answer to a call that has no content, or that announces a task in the form of
// another revision: taken for a result, it would hide the task. Content may be missing beside structured content and in
// an error, since some servers omit it there.
func checkToolResult(result json.RawMessage) error {
	var r struct {
		ResultType json.RawMessage   `json:"resultType"`
		Task       json.RawMessage   `json:"task"`
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if json.Unmarshal(result, &r) != nil || r.IsError || len(r.Content) > 0 || len(r.Structured) > 0 && string(r.Structured) != "null" {
		return nil // a result that cannot be decoded has its own error
	}
	switch {
	case string(r.ResultType) == `"task"` || IsObject(r.Task):
		return errors.New("it announces a task in the form of another revision, and is no result")
	case r.Content == nil:
		return errors.New("it is neither a result nor a task: it has no content")
	}
	return nil
}

// DescribeTask makes the description of a task for the _meta of a result that only tells of it.
func DescribeTask(r taskstore.Record) (json.RawMessage, error) {
	return json.Marshal(ProjectTask20251125(r))
}

// MetaTask is the key of the description that DescribeTask makes.
const MetaTask = "io.github.mcptaskgen/task"

// cursor is a place in a principal's list. It has a checksum over the principal, so that a made-up
// or borrowed one is refused (C-82). It gives access to nothing, since a list has only the caller's
// own tasks.
type cursor struct {
	At int64  `json:"t"`
	ID string `json:"i"`
}

const checksumLen = 12

func sumCursor(principal string, data []byte) []byte {
	sum := sha256.Sum256(append([]byte(principal+"\x00"), data...))
	return sum[:checksumLen]
}

func newCursor(principal string, p taskstore.Position) string {
	data, err := json.Marshal(cursor{p.CreatedAt.UnixNano(), p.ID})
	if err != nil { // a number and a string always marshal
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(sumCursor(principal, data), data...))
}

func parseCursor(principal, text string) (taskstore.Position, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	var c cursor
	// Decoding forgives line breaks and spare bits: a cursor of ours has none.
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != text || len(raw) < checksumLen || !bytes.Equal(raw[:checksumLen], sumCursor(principal, raw[checksumLen:])) ||
		json.Unmarshal(raw[checksumLen:], &c) != nil {
		return taskstore.Position{}, mcptask.Errorf(mcptask.CodeInvalidParams, "the cursor is not one of ours")
	}
	return taskstore.Position{CreatedAt: time.Unix(0, c.At).UTC(), ID: c.ID}, nil
}
