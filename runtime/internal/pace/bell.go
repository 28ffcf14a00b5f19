package pace

import "slices"

// Bell wakes whoever waits. It is not safe for concurrent use.
type Bell struct{ waiting []chan struct{} }

// Wait adds who waits, by a channel with room for one, and says whether there
// was nobody before.
func (b *Bell) Wait(news chan struct{}) (first bool) {
	b.waiting = append(b.waiting, news)
	return len(b.waiting) == 1
}

// Leave takes one out, and says whether nobody is left.
func (b *Bell) Leave(news chan struct{}) (last bool) {
	if i := slices.Index(b.waiting, news); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	return len(b.waiting) == 0
}

// Empty says whether nobody waits.
func (b *Bell) Empty() bool { return len(b.waiting) == 0 }

// Ring wakes all. Who is awake already finds it rung.
func (b *Bell) Ring() {
	for _, news := range b.waiting {
		select {
		case news <- struct{}{}:
		default:
		}
	}
}
