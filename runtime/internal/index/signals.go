package index

// Signals has a channel for each key that somebody waits for. Its zero value
// is ready to use; it is not safe for concurrent use, so that what is waited
// for can be looked at under the same lock.
type Signals[K comparable] struct{ open Map[K, chan struct{}] }

// Next is the channel that the next Wake of the key closes.
func (s *Signals[K]) Next(key K) <-chan struct{} {
	c, ok := s.open.Get(key)
	if !ok {
		c = make(chan struct{})
		s.open.Set(key, c)
	}
	return c
}

// Wake wakes whoever waits for the key.
func (s *Signals[K]) Wake(key K) {
	if c, ok := s.open.Get(key); ok {
		close(c)
		s.open.Delete(key)
	}
}

// WakeAll wakes whoever waits for any key.
func (s *Signals[K]) WakeAll() {
	for _, c := range s.open.entries {
		close(c)
	}
	*s = Signals[K]{}
}
