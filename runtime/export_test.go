package mcptask

import "time"

// NewMemoryStoreAt makes a memory store with a clock of the test's.
func NewMemoryStoreAt(clock func() time.Time) Store { return newMemoryStore(clock) }

const renewEvery = leaseFor / 3

// CountProgress returns how many tasks a server has progress notifications for.
func (s *Server) CountProgress() (n int) {
	s.progress.Range(func(any, any) bool { n++; return true })
	return n
}
