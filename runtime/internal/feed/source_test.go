package feed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
)

// work counts how often a source's work was started and stopped.
type work struct {
	started, stopped int
	fault            error // of start
}

func (w *work) start(context.Context) (stop func(), err error) {
	if w.fault != nil {
		return nil, w.fault
	}
	w.started++
	return func() { w.stopped++ }, nil
}

// check compares the counts of starts and stops.
func (w *work) check(t *testing.T, when string, started, stopped int) {
	t.Helper()
	if w.started != started || w.stopped != stopped {
		t.Errorf("%s: started %d times and stopped %d times; want %d and %d", when, w.started, w.stopped, started, stopped)
	}
}

// begin returns a reader of a source that has read its first news.
func begin(t *testing.T, s *Source[int]) (next func() (int, error, bool), leave func()) {
	t.Helper()
	next, leave = iter.Pull2(s.Read(t.Context(), missed))
	t.Cleanup(leave)
	if n, err, ok := next(); n != missed || err != nil || !ok {
		t.Fatalf("a reader begins with %d, %v, %t", n, err, ok)
	}
	return next, leave
}

// TestSourceWorksForReaders checks that a source works from its first reader to its last.
func TestSourceWorksForReaders(t *testing.T) {
	var w work
	s := NewSource[int](w.start)
	for round := range 2 {
		_, leave := begin(t, s)
		next, leaveLast := begin(t, s)
		leave()
		w.check(t, "with one reader left", round+1, round)
		s.Publish(7)
		if n, err, ok := next(); n != 7 || err != nil || !ok {
			t.Errorf("read %d, %v, %t", n, err, ok)
		}
		leaveLast()
		w.check(t, "without readers", round+1, round+1)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for n, err := range s.Read(ended, missed) {
		t.Errorf("read %d, %v after the end of the context", n, err)
	}
	w.check(t, "after a reader whose context has ended", 2, 2)
}

// TestSourceFails checks that errors end the readers, and that the source works again for the next one.
func TestSourceFails(t *testing.T) {
	fault := errors.New("a fault")
	w := work{fault: fault}
	s := NewSource[int](w.start)
	var got []string
	for n, err := range s.Read(t.Context(), missed) {
		got = append(got, fmt.Sprint(n, err))
	}
	if !slices.Equal(got, []string{"0 a fault"}) {
		t.Errorf("without a start: %q", got)
	}
	w.fault = nil
	next, leave := begin(t, s)
	s.Fail(fault)
	w.check(t, "after the fault", 1, 1)
	_, leaveLater := begin(t, s)
	if _, err, ok := next(); !errors.Is(err, fault) || !ok {
		t.Errorf("the reader at the fault got %v, %t", err, ok)
	}
	leave()
	w.check(t, "with a later reader", 2, 1)
	leaveLater()
	w.check(t, "without readers", 2, 2)
	s.Fail(fault)
	w.check(t, "after a fault without readers", 2, 2)
}

// TestSourceCloses checks that Close stops the work though a reader has not left, and ends readers
// without an error.
func TestSourceCloses(t *testing.T) {
	var w work
	s := NewSource[int](w.start)
	next, _ := begin(t, s)
	s.Close()
	w.check(t, "after Close", 1, 1)
	if n, err, ok := next(); ok {
		t.Errorf("read %d, %v from a closed source", n, err)
	}
	for n, err := range s.Read(t.Context(), missed) {
		t.Errorf("read %d, %v from a closed source", n, err)
	}
	if w.started != 1 {
		t.Error("a closed source has started its work")
	}
}
