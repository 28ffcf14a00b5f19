package taskserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Server runs the tools of one or more services and keeps their tasks. It speaks no
// protocol itself: the handlers and adapters of packages gosdk and mcpgo do. All methods are safe for concurrent use.
type Server struct{ backend *Backend }

// New makes a server of bound services. Duplicate tools, schemas that do not compile and a nil implementation are
// errors; New reports all of them at once, but of a policy only the first. Services may also come later, see
// [Server.Register]. Close the server to stop its tasks.
func New(options Options, services ...mcptask.Tools) (*Server, error) {
	backend, err := newBackend(options, services...)
	if err != nil {
		return nil, err
	}
	return backend.server, nil
}

// Backend returns the server as gateways and adapters see it.
func (s *Server) Backend() *Backend { return s.backend }

// Register adds a service to a running server. With an error, it adds no part of the service. Adapters that take over
// the tools of an SDK use it.
func (s *Server) Register(service mcptask.Tools) error {
	former := len(s.backend.catalog.listNames())
	if err := errors.Join(s.backend.catalog.addService(&service)...); err != nil {
		return err
	}
	if len(s.backend.catalog.listNames()) > former { // tasks of the new tools may be there already
		s.backend.takeChange(taskstore.Change{Free: true})
	}
	s.backend.warnOfMemoryStore(service)
	return nil
}

// Operator returns the operator with a person's name. The program has checked who the person is: an Operator may do
// everything.
func (s *Server) Operator(name string) *Operator { return &Operator{s.backend, name} }

// Inspector returns the view of the server's store across principals. It returns false if the store has none.
func (s *Server) Inspector() (taskstore.Inspector, bool) {
	inspector, ok := s.backend.store.(taskstore.Inspector)
	return inspector, ok
}

// EndsPerMinute returns how many tasks have ended in each of the last 60 minutes, the oldest first. The last number is
// that of the minute that has not ended. It counts the tasks of all processes that share the store, as far as the
// store's feed has told this process of them since its start.
func (s *Server) EndsPerMinute() []int { return s.backend.ends.list(s.backend.Now()) }

// Ready returns an error if the server should get no requests now: it is closing, or it has not reached its store for
// most of a lease. It makes no call, so it is cheap. Use it for a probe of readiness; package gosdk has a handler.
func (s *Server) Ready() error {
	switch {
	case s.backend.closing.Err() != nil:
		return mcptask.ErrServerClosed
	case !s.backend.hasLease():
		return errors.New("mcptask: the store does not renew the lease of this server: see the log")
	}
	return nil
}

// Live returns an error if the background work of the server stands still, so that the process should be restarted. It
// returns nil if only the store is away, since another process would not reach it either. Use it for a probe of
// liveness; package gosdk has a handler. A server that closes is live until its process ends.
func (s *Server) Live() error {
	last := time.Unix(0, s.backend.beating.Load())
	if stopped := time.Since(last); s.backend.drained.Err() == nil && stopped > 2*s.backend.lease {
		return fmt.Errorf("mcptask: the server has not tried to renew its lease for %v", stopped.Round(time.Second))
	}
	return nil
}

// Closing returns a context that ends when the server begins to close.
func (s *Server) Closing() context.Context { return s.backend.closing }

// Close stops the server: it ends the contexts of handlers and gives them
// Options.Drain to return. In this time it also waits for the store to take or
// refuse tasks that are being created. A task that could not end stays in a store of the user's
// own, for another server to take. In the server's own store it ends as cancelled,
// since no other server has that store. Close may be called twice.
func (s *Server) Close() error {
	s.backend.closeOnce.Do(s.backend.close)
	return s.backend.closeErr
}
