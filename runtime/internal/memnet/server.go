package memnet

import (
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server serves HTTP in memory.
type Server struct {
	URL string

	server  *http.Server
	serving sync.WaitGroup

	mu    sync.Mutex
	ended *sync.Cond
	conns int // open connections
}

// NewServer starts a server. net/http logs to logs, or nowhere if logs is nil.
func NewServer(handler http.Handler, logs *log.Logger) *Server {
	l := Listen()
	s := &Server{URL: "http://" + l.Addr().String()}
	s.ended = sync.NewCond(&s.mu)
	s.server = &http.Server{ErrorLog: logs, ReadHeaderTimeout: time.Hour, Handler: handler, ConnState: s.countConn}
	s.serving.Go(func() { _ = s.server.Serve(l) }) // until Close
	return s
}

// Close closes every connection and waits until all of them have ended.
func (s *Server) Close() {
	_ = s.server.Close() // the listener is in memory
	s.serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.conns > 0 {
		s.ended.Wait()
	}
}

// countConn counts the open connections.
func (s *Server) countConn(_ net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.conns++
	case http.StateClosed, http.StateHijacked:
		s.conns--
		s.ended.Broadcast()
	}
}
