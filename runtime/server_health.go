package mcptask

import (
	"errors"
	"fmt"
	"time"
)

// Ready returns why the server should get no requests now, or nil: it is closing, or it has not reached its store for most
// of a lease. It asks nobody, so it is cheap. A program asks it for a probe of readiness; package gosdk has a handler.
func (s *Server) Ready() error {
	switch {
	case s.closing.Err() != nil:
		return ErrServerClosed
	case !s.hasLease():
		return errors.New("mcptask: the store does not renew the lease of this server: see the log")
	}
	return nil
}

// Live returns why the process should be started anew, or nil: the work that goes on beside the requests stands still. A
// store that is away is no reason, since another process would not reach it either. A program asks it for a probe of
// liveness; package gosdk has a handler. A server that closes is live until its process ends.
func (s *Server) Live() error {
	last := time.Unix(0, s.beating.Load())
	if stopped := time.Since(last); s.drained.Err() == nil && stopped > 2*s.lease {
		return fmt.Errorf("mcptask: the server has not tried to renew its lease for %v", stopped.Round(time.Second))
	}
	return nil
}
