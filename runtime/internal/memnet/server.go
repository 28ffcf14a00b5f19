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
	conns int // that are open
}

// NewServer starts a server. logs gets what net/http has to say, or nothing if it is nil.
func NewServer(handler http.Handler, logs *log.Logger) *Server {
	l := Listen()
	s := &Server{URL: "http://" + l.Addr().String()}
	s.ended = sync.NewCond(&s.mu)
	s.server = &http.Server{ErrorLog: logs, ReadHeaderTimeout: time.Hour, Handler: handler, ConnState: s.count}
	s.serving.Go(func() { _ = s.server.Serve(l) }) // until it is closed
	return s
}

// Close closes every connection and waits until its goroutine has ended.
func (s *Server) Close() {
	_ = s.server.Close() // the listener is in memory
	s.serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.conns > 0 {
		s.ended.Wait()
	}
}

// count follows how many connections are open.
func (s *Server) count(_ net.Conn, state http.ConnState) {
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
