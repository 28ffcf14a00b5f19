package feed

import (
	"context"
	"errors"
	"iter"
)

// Source is a Feed that needs work to have news, such as a poll. It does the work as long as it has
// readers. It is safe for concurrent use.
type Source[E any] struct {
	Feed[E]
	start func(ctx context.Context) (stop func(), err error)

	turn     chan struct{}                               // has an element while a goroutine uses the fields below
	ends     map[context.Context]context.CancelCauseFunc // end the readers, by their contexts
	stop     func()                                      // set if there are readers
	isClosed bool
}

// NewSource returns a source. It calls start for its first reader, with the reader's context, and
// stop when the last reader leaves, when the source fails, and when it closes. The news has to be
// complete from the return of start on. stop must not wait for the work, and may be called twice.
func NewSource[E any](start func(ctx context.Context) (stop func(), err error)) *Source[E] {
	return &Source[E]{start: start, turn: make(chan struct{}, 1), ends: map[context.Context]context.CancelCauseFunc{}}
}

// failure is why a source has ended a reader.
type failure struct{ error }

// Read is like Read of [Feed]. An error of start or of Fail ends it, and comes last.
func (s *Source[E]) Read(ctx context.Context, missed E) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		if s.enter(ctx, end) {
			defer s.leave(ctx)
			for e := range s.Feed.Read(ctx, missed) {
				if !yield(e, nil) {
					return
				}
			}
		}
		var failed failure
		if errors.As(context.Cause(ctx), &failed) {
			var none E
			yield(none, failed.error)
		}
	}
}

// enter adds a reader, which its context names. It reports whether there is something to read.
func (s *Source[E]) enter(ctx context.Context, end context.CancelCauseFunc) bool {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-s.turn }()
	if s.isClosed || ctx.Err() != nil {
		return false
	}
	if len(s.ends) == 0 {
		stop, err := s.start(ctx)
		if err != nil {
			end(failure{err}) // unless ctx has ended
			return false
		}
		s.stop = stop
	}
	s.ends[ctx] = end
	return true
}

// leave removes a reader, unless Fail has done so.
func (s *Source[E]) leave(ctx context.Context) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.ends[ctx] == nil {
		return
	}
	if delete(s.ends, ctx); len(s.ends) == 0 {
		s.stop()
	}
}

// Fail ends all readers with an error. The next reader starts the work again.
func (s *Source[E]) Fail(err error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if len(s.ends) == 0 {
		return
	}
	for _, end := range s.ends {
		end(failure{err})
	}
	clear(s.ends)
	s.stop()
}

// Close ends all readers, and those that come later. It stops the work.
func (s *Source[E]) Close() {
	s.turn <- struct{}{}
	s.isClosed = true
	if len(s.ends) > 0 {
		s.stop()
	}
	<-s.turn
	s.Feed.Close()
}
