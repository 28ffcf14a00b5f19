package wiretest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// SessionStore is a memory store that servers of a test share, one after the other or at once. It keeps their
// sessions, as a store that survives its process does.
type SessionStore struct {
	taskstore.Store
	// Away makes the methods for sessions fail.
	Away bool
	// Full makes EndSession remember nothing.
	Full bool

	mu    sync.Mutex
	ended map[[2]string]bool
}

// NewSessionStore returns an empty SessionStore.
func NewSessionStore() *SessionStore {
	return &SessionStore{Store: taskstore.NewMemory(), ended: map[[2]string]bool{}}
}

var errAway = errors.New("the store is away")

// SessionKey implements taskstore.SessionStore.
func (s *SessionStore) SessionKey(context.Context) ([]byte, error) {
	if s.Away {
		return nil, errAway
	}
	return bytes.Repeat([]byte("s"), taskstore.MinSessionKey), nil
}

// EndSession implements taskstore.SessionStore.
func (s *SessionStore) EndSession(_ context.Context, principal, session string, _ time.Time, _ int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Away {
		return false, errAway
	}
	s.ended[[2]string{principal, session}] = s.ended[[2]string{principal, session}] || !s.Full
	return !s.Full, nil
}

// HasEnded implements taskstore.SessionStore.
func (s *SessionStore) HasEnded(_ context.Context, principal, session string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Away {
		return false, errAway
	}
	return s.ended[[2]string{principal, session}], nil
}
