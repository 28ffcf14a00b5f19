package pace

import "slices"

// Bell wakes all that wait for it. It is not safe for concurrent use.
type Bell struct{ waiting []chan struct{} }

// Wait adds a waiter. Its channel has room for one. Wait reports whether the waiter is the
// first.
func (b *Bell) Wait(news chan struct{}) (first bool) {
	b.waiting = append(b.waiting, news)
	return len(b.waiting) == 1
}

// Leave removes a waiter. It reports whether none is left.
func (b *Bell) Leave(news chan struct{}) (last bool) {
	if i := slices.Index(b.waiting, news); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	return len(b.waiting) == 0
}

// Empty reports whether there is no waiter.
func (b *Bell) Empty() bool { return len(b.waiting) == 0 }

// Ring wakes all waiters. It does not block: a waiter that is awake finds its channel full.
func (b *Bell) Ring() {
	for _, news := range b.waiting {
		select {
		case news <- struct{}{}:
		default:
		}
	}
}
