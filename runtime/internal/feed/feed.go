// Package feed passes news to any number of readers, none of which can hold up the others or the
// writer.
package feed

import (
	"context"
	"iter"
	"sync"
)

// most is how much unread news a reader may have. A reader that is slower misses news.
const most = 4096

// Feed passes news to its readers. Its zero value is ready to use. It is safe for concurrent use.
type Feed[E any] struct {
	mu      sync.Mutex
	closed  bool
	readers map[*reader[E]]bool
}

// reader is one reader. The feed's lock guards it.
type reader[E any] struct {
	unread []E
	missed bool
	wake   chan struct{} // has an element if there may be something to read
}

// Publish passes news to all readers, in this order. It does not block.
func (f *Feed[E]) Publish(news ...E) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.readers {
		if r.unread = append(r.unread, news...); len(r.unread) > most {
			r.unread, r.missed = nil, true
		}
		r.notify()
	}
}

// Miss tells all readers that they have missed news.
func (f *Feed[E]) Miss() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.readers {
		r.unread, r.missed = nil, true
		r.notify()
	}
}

// Close ends all readers, and those that come later.
func (f *Feed[E]) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for r := range f.readers {
		r.notify()
	}
}

func (r *reader[E]) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Read yields missed, and then all news from then on. It yields missed again instead of news that
// the reader was too slow for. It ends with ctx or with the feed.
func (f *Feed[E]) Read(ctx context.Context, missed E) iter.Seq[E] {
	return func(yield func(E) bool) {
		r := &reader[E]{missed: true, wake: make(chan struct{}, 1)}
		f.mu.Lock()
		if f.readers == nil {
			f.readers = map[*reader[E]]bool{}
		}
		f.readers[r] = true
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.readers, r)
		}()
		for {
			f.mu.Lock()
			unread, lost, closed := r.unread, r.missed, f.closed
			r.unread, r.missed = nil, false
			f.mu.Unlock()
			if closed || lost && !yield(missed) {
				return
			}
			for _, e := range unread {
				if ctx.Err() != nil || !yield(e) {
					return
				}
			}
			select {
			case <-r.wake:
			case <-ctx.Done():
				return
			}
		}
	}
}
