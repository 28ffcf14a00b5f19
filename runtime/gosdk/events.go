package gosdk

import (
	"container/list"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of [NewEventStore].
const (
	// maxEventStreams is how many streams of a session are kept.
	maxEventStreams = 64
	// maxEventBytes is how many bytes are kept in all, and maxStreamBytes how many of a stream. Each
	// stream and each event count with eventOverhead.
	maxEventBytes  = 16 << 20
	maxStreamBytes = 5 << 20
	eventOverhead  = 512
)

// NewEventStore returns an EventStore in memory, for mcp.StreamableHTTPOptions. With it, a client of
// 2025-11-25 whose connection breaks during a plain call gets the result when it comes back with
// Last-Event-ID. It keeps 64 streams of each session, 5 MiB of each stream and 16 MiB in all, and
// forgets the streams that were used least recently. A session's own stream goes on without its
// forgotten events. The SDK's MemoryEventStore bounds only the data, and keeps an entry for each
// request until its session ends.
func NewEventStore() mcp.EventStore {
	return &eventStore{sessions: map[string]*eventSession{}}
}

// eventStore is a mcp.EventStore. It is safe for concurrent use.
type eventStore struct {
	mu       sync.Mutex
	sessions map[string]*eventSession
	used     list.List // of *eventStream; the one that was used least recently is first
	bytes    int
}

// eventSession has the streams of a session.
type eventSession struct {
	streams map[string]*eventStream
	used    list.List // of *eventStream; the one that was used least recently is first
}

// eventStream has the events of a stream.
type eventStream struct {
	session, id string
	events      [][]byte
	first       int // the number of the first of them
	bytes       int
	// place is in the list of the store, and own in that of the session.
	place, own *list.Element
}

// ownStream is the ID of a session's own stream. It lasts as long as the session, so it opens even if its events are
// forgotten.
const ownStream = ""

// errEventsGone means that a stream cannot be resumed.
var errEventsGone = errors.New("gosdk: the events of this stream are not kept any more: send the call again")

// find returns a stream and marks it as used. It returns nil if the stream is not kept. s.mu is held.
func (s *eventStore) find(session, id string) *eventStream {
	of := s.sessions[session]
	if of == nil || of.streams[id] == nil {
		return nil
	}
	stream := of.streams[id]
	s.used.MoveToBack(stream.place)
	of.used.MoveToBack(stream.own)
	return stream
}

// remove forgets a stream. s.mu is held.
func (s *eventStore) remove(stream *eventStream) {
	of := s.sessions[stream.session]
	s.used.Remove(stream.place)
	of.used.Remove(stream.own)
	s.bytes -= stream.bytes
	if delete(of.streams, stream.id); len(of.streams) == 0 {
		delete(s.sessions, stream.session)
	}
}

// grow counts bytes of a stream, and forgets streams until all are within the bound. s.mu is held.
func (s *eventStore) grow(stream *eventStream, n int) {
	stream.bytes += n
	s.bytes += n
	for s.bytes > maxEventBytes {
		s.remove(s.used.Front().Value.(*eventStream))
	}
}

// Open implements mcp.EventStore.
func (s *eventStore) Open(_ context.Context, session, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(session, id) != nil {
		return nil
	}
	if of := s.sessions[session]; of != nil && len(of.streams) >= maxEventStreams {
		s.remove(of.used.Front().Value.(*eventStream))
	}
	of := s.sessions[session]
	if of == nil {
		of = &eventSession{streams: map[string]*eventStream{}}
		s.sessions[session] = of
	}
	stream := &eventStream{session: session, id: id}
	stream.place, stream.own = s.used.PushBack(stream), of.used.PushBack(stream)
	of.streams[id] = stream
	s.grow(stream, eventOverhead)
	return nil
}

// Append implements mcp.EventStore. A stream that was forgotten stays so, because its events would get other numbers.
func (s *eventStore) Append(_ context.Context, session, id string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := s.find(session, id)
	if stream == nil {
		return errEventsGone
	}
	stream.events = append(stream.events, slices.Clone(data))
	size := len(data) + eventOverhead
	for stream.bytes+size > maxStreamBytes && len(stream.events) > 1 {
		size -= len(stream.events[0]) + eventOverhead
		stream.events = slices.Delete(stream.events, 0, 1)
		stream.first++
	}
	s.grow(stream, size)
	return nil
}

// After implements mcp.EventStore.
func (s *eventStore) After(_ context.Context, session, id string, index int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s.mu.Lock()
		var events [][]byte
		from := -1
		if stream := s.find(session, id); stream != nil {
			events, from = slices.Clone(stream.events), index+1-stream.first
		}
		s.mu.Unlock()
		if from < 0 || from > len(events) {
			if id == ownStream {
				return
			}
			yield(nil, errEventsGone)
			return
		}
		for _, data := range events[from:] {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed implements mcp.EventStore.
func (s *eventStore) SessionClosed(_ context.Context, session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.sessions[session]; of != nil {
		for _, stream := range of.streams {
			s.remove(stream)
		}
	}
	return nil
}
