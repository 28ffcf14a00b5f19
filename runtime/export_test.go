package mcptask

import "time"

// NewMemoryStoreAt makes a memory store with a clock of the test's.
func NewMemoryStoreAt(clock func() time.Time) Store { return newMemoryStore(clock) }
