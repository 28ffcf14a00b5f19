package taskstore

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// Timeline has the events of a task, oldest first. It is a bounded text that a Store keeps as it is. The zero value has
// no moments.
type Timeline string

// Moment is one event of a Timeline.
type Moment struct {
	Kind EventKind
	// At is the store's time, in UTC.
	At time.Time
	// Attempt is the run that it belongs to, or 0 before the first.
	Attempt int
	// Text says more: the worker of a run that has started or was lost, the message of a report, the key of a question or
	// a step, the outcome of an end. For a task that an operator has run again, the Text of its creation is "again" and the
	// ID of the former task, as [LogID] shortens it. It is cut to MaxMomentText bytes.
	Text string
	// Operator is the person who has done it in the requestor's place, or "".
	Operator string
}

// EventKind is the kind of an event in the life of a task.
type EventKind string

// The kinds of events.
const (
	// EventCreated means that a task was created. It waits in line or has started at once.
	EventCreated EventKind = "created"
	// EventStarted means that a run began. The task's Attempt tells which one.
	EventStarted EventKind = "started"
	// EventReported means that a progress report was stored.
	EventReported EventKind = "reported"
	// EventAsked means that the handler has asked a question.
	EventAsked EventKind = "asked"
	// EventAnswered means that a question was answered.
	EventAnswered EventKind = "answered"
	// EventStep means that a step was stored. The Text is its name.
	EventStep EventKind = "step"
	// EventWithdrawn means that the handler no longer asks a question.
	EventWithdrawn EventKind = "withdrawn"
	// EventStopping means that the requestor has asked the task to stop.
	EventStopping EventKind = "stopping"
	// EventLost means that the worker of a run died or was cut off. The task starts again or fails. The event comes
	// once for each such run, and the task's Attempt tells which it was.
	EventLost EventKind = "lost"
	// EventLeft means that a closing server released the task, or its run was parked until a question is answered.
	EventLeft EventKind = "left"
	// EventEnded means that the task ended with an outcome, because its ttl is over, or because no client was told of
	// it.
	EventEnded EventKind = "ended"
)

// The bounds of a Timeline.
const (
	// MaxMoments is how many moments a Timeline has at most. If there are more, the oldest reports and steps are left
	// out, and then the oldest of the others, but not the first.
	MaxMoments = 48
	// MaxMomentText is how many bytes the Text and the Operator of a Moment have at most.
	MaxMomentText = 64
)

// momentKinds are the kinds by their number in an encoded moment. New ones come at the end.
var momentKinds = []EventKind{
	"", EventCreated, EventStarted, EventReported, EventAsked, EventAnswered, EventWithdrawn, EventStopping, EventLost, EventLeft, EventEnded,
	EventStep,
}

// With returns the timeline with one more moment at its end.
func (t Timeline) With(m Moment) Timeline {
	count, last := 0, int64(0)
	for rest := t; rest != ""; count++ {
		e, ok := rest.cut()
		if !ok {
			t = t[:len(t)-len(rest)] // the rest is damaged
			break
		}
		last += e.since
		rest = e.rest
	}
	if count < MaxMoments {
		return t + encodeMoment(m, last)
	}
	moments := append(t.Moments(), m)
	if more := len(moments) - 2*MaxMoments; more > 0 { // a newer server may keep more, and a damaged text any number
		moments = slices.Delete(moments, 1, 1+more)
	}
	for len(moments) > MaxMoments {
		oldest := slices.IndexFunc(moments, func(m Moment) bool { return m.Kind == EventReported || m.Kind == EventStep })
		if oldest < 0 {
			oldest = 1
		}
		moments = slices.Delete(moments, oldest, oldest+1)
	}
	var kept strings.Builder
	last = 0
	for _, m := range moments {
		_, _ = kept.WriteString(string(encodeMoment(m, last))) // never fails
		last = m.At.UnixMicro()
	}
	return Timeline(kept.String())
}

// encodeMoment encodes a moment: the number of its kind, the microseconds since the one before, its attempt, and its
// texts.
func encodeMoment(m Moment, last int64) Timeline {
	var buffer [4*binary.MaxVarintLen64 + 2*MaxMomentText]byte
	b := binary.AppendUvarint(buffer[:0], uint64(max(slices.Index(momentKinds, m.Kind), 0))) //nolint:gosec // it is an index
	b = binary.AppendVarint(b, m.At.UnixMicro()-last)
	b = binary.AppendUvarint(b, uint64(max(m.Attempt, 0))) //nolint:gosec // it is not negative
	for _, text := range []string{m.Text, m.Operator} {
		text = strings.ToValidUTF8(text[:min(len(text), MaxMomentText)], "")
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return Timeline(b)
}

// encodedMoment is a moment as it is encoded, and the rest of the timeline.
type encodedMoment struct {
	kind, attempt  uint64
	since          int64 // microseconds
	text, operator string
	rest           Timeline
}

// cut returns the first moment. ok is false if it is damaged.
func (t Timeline) cut() (e encodedMoment, ok bool) {
	rest, ok := string(t), true
	number := func() uint64 {
		n, size := binary.Uvarint([]byte(rest[:min(len(rest), binary.MaxVarintLen64)]))
		ok = ok && size > 0
		rest = rest[max(size, 0):]
		return n
	}
	text := func() string {
		n := number()
		if ok = ok && n <= uint64(len(rest)); !ok {
			return ""
		}
		text := rest[:n]
		rest = rest[n:]
		return text
	}
	e.kind = number()
	zigzag := number()
	e.since = int64(zigzag>>1) ^ -int64(zigzag&1) //nolint:gosec // the reverse of binary.AppendVarint
	e.attempt, e.text, e.operator = number(), text(), text()
	e.rest = Timeline(rest)
	return e, ok
}

// Moments returns the moments. It leaves out a damaged moment and all after it.
func (t Timeline) Moments() []Moment {
	var moments []Moment
	at := int64(0)
	for t != "" {
		e, ok := t.cut()
		if !ok {
			break
		}
		at += e.since
		m := Moment{At: time.UnixMicro(at).UTC(), Attempt: int(min(e.attempt, 1<<31-1)), Text: e.text, Operator: e.operator} //nolint:gosec // it fits
		if e.kind < uint64(len(momentKinds)) {                                                                               // a newer server may have written it
			m.Kind = momentKinds[e.kind]
		}
		moments = append(moments, m)
		t = e.rest
	}
	return moments
}
