package replicas

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// maxBody bounds the body of a request, which the proxy keeps until a server has taken it.
const maxBody = 8 << 20

// Proxy hands each request to the next of several servers, whatever session it is of. If a server
// refuses the connection, the request goes to the next one. Any other failure is answered with the
// status 502, because the server may have acted on the request.
type Proxy struct {
	servers []*url.URL
	next    atomic.Uint64
	forward httputil.ReverseProxy

	mu       sync.Mutex
	sessions map[string]map[int]bool // the servers that answered, by session
}

// NewProxy returns a proxy for the servers at these URLs, of which it uses scheme and host.
func NewProxy(servers ...string) (*Proxy, error) {
	p := &Proxy{sessions: map[string]map[int]bool{}}
	for _, server := range servers {
		target, err := url.Parse(server)
		if err != nil {
			return nil, err
		}
		p.servers = append(p.servers, target)
	}
	p.forward = httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {}, // RoundTrip chooses the server
		Transport:     p,
		FlushInterval: -1,                                                      // pass streams through without buffering
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // a cut stream is expected
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body of the request cannot be read", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	p.forward.ServeHTTP(w, r)
}

// RoundTrip implements http.RoundTripper.
func (p *Proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	first := p.next.Add(1) - 1
	var refused error
	for i := range p.servers {
		number := int((first + uint64(i)) % uint64(len(p.servers)))
		attempt := r.Clone(r.Context())
		attempt.URL.Scheme, attempt.URL.Host = p.servers[number].Scheme, p.servers[number].Host
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		attempt.Body = body
		response, err := http.DefaultTransport.RoundTrip(attempt)
		switch {
		case err == nil:
			p.noteSession(r, response, number)
			return response, nil
		case !errors.Is(err, syscall.ECONNREFUSED):
			return nil, err
		}
		refused = err
	}
	return nil, refused
}

// noteSession notes which server has answered a request of a session.
func (p *Proxy) noteSession(r *http.Request, response *http.Response, number int) {
	const header = "Mcp-Session-Id"
	id := r.Header.Get(header)
	if id == "" {
		id = response.Header.Get(header)
	}
	if id == "" || response.StatusCode >= http.StatusBadRequest {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions[id] == nil {
		p.sessions[id] = map[int]bool{}
	}
	p.sessions[id][number] = true
}

// Sessions returns, for each session of MCP, the numbers of the servers that have answered its
// requests, from 1.
func (p *Proxy) Sessions() [][]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all [][]int
	for _, servers := range p.sessions {
		var numbers []int
		for _, number := range slices.Sorted(maps.Keys(servers)) {
			numbers = append(numbers, number+1)
		}
		all = append(all, numbers)
	}
	return all
}
