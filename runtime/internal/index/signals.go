package index

// Signals has a channel for each key that has waiters. Its zero value is ready to use. It is not
// safe for concurrent use: its owner's lock guards it together with the state that is waited for.
type Signals[K comparable] struct{ open Map[K, chan struct{}] }

// Next returns the channel that the next Wake of the key closes.
func (s *Signals[K]) Next(key K) <-chan struct{} {
	c, ok := s.open.Get(key)
	if !ok {
		c = make(chan struct{})
		s.open.Set(key, c)
	}
	return c
}

// Wake wakes all waiters of the key.
func (s *Signals[K]) Wake(key K) {
	if c, ok := s.open.Get(key); ok {
		close(c)
		s.open.Delete(key)
	}
}

// WakeAll wakes all waiters.
func (s *Signals[K]) WakeAll() {
	for _, c := range s.open.entries {
		close(c)
	}
	*s = Signals[K]{}
}
