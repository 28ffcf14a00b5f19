package mcptasktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/origin"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// listenHandler answers a request for a subscription. next is the server.
type listenHandler func(w http.ResponseWriter, r *http.Request, next http.Handler)

// between is a test that stands between client and server. It counts the requests by method.
type between struct {
	testing.TB
	listen listenHandler // if not nil, it answers requests for subscriptions

	mu    sync.Mutex
	count map[string]int
}

// WrapHandler is called by mcptasktest.Connect.
func (b *between) WrapHandler(next http.Handler) http.Handler {
	next = wirecheck.Handler(b, next)
	b.count = map[string]int{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var m struct{ Method string }
		_ = json.Unmarshal(body, &m) // a request without a body has no method
		b.mu.Lock()
		b.count[m.Method]++
		b.mu.Unlock()
		if b.listen != nil && m.Method == "subscriptions/listen" {
			b.listen(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (b *between) of(method string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count[method]
}

// refuseListen answers as a server without subscriptions.
func refuseListen(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	var m struct{ ID json.RawMessage }
	_ = json.NewDecoder(r.Body).Decode(&m)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no subscriptions"}}`, m.ID)
}

type nap struct {
	Seconds float64 `json:"seconds"`
}

// napping returns a tool that takes as long as its caller says.
func napping(poll time.Duration) mcptask.Tools {
	return mcptask.Tools{Service: "Naps", Impl: 1, Capabilities: mcptask.Capabilities{
		mcptask.Revision20251125: `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`,
		mcptask.Revision20260728: `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`,
	}, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "nap", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, Poll: poll, OnLost: mcptask.RestartWhenLost}},
			func(ctx context.Context, _ *mcptask.Task, in nap) (string, error) {
				select {
				case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
					return "slept", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}),
	}}
}

func startNap(t testing.TB, conn mcptask.Conn, d time.Duration) *mcptask.Call[string] {
	t.Helper()
	call, err := mcptask.Start[string](t.Context(), conn, "nap", nap{d.Seconds()})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// locked collects text from several goroutines.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestEndShowsAtOnce checks that a client that waits learns of the end at once, hours before the next
// poll.
func TestEndShowsAtOnce(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *mcptask.Call[string]) error{
		"Wait": func(ctx context.Context, call *mcptask.Call[string]) error {
			_, err := call.Wait(ctx)
			return err
		},
		"Updates": func(ctx context.Context, call *mcptask.Call[string]) error {
			for _, err := range call.Updates(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"Settled": func(ctx context.Context, call *mcptask.Call[string]) error {
			for _, err := range mcptask.Settled(ctx, call) {
				return err
			}
			return errors.New("none")
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			tb := &between{TB: wirecheck.TB(t)}
			conn := mcptasktest.Connect(tb, mcptask.Revision20260728, mcptasktest.Options{}, napping(time.Hour))
			began := time.Now()
			if err := wait(t.Context(), startNap(t, conn, 10*time.Minute)); err != nil || time.Since(began) != 10*time.Minute {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if polls := tb.of("tasks/get"); polls != 0 {
				t.Errorf("%d polls", polls)
			}
		})
	}
}

// TestRequestsOfMany is TestRequestsOfAThousand with fewer calls. That one takes long.
func TestRequestsOfMany(t *testing.T) { countRequests(t, 150, 20) }

// countRequests checks how many requests it takes to wait for calls of twenty seconds, of which the
// server tells or which the client polls. No default limit of a server may be in their way.
func countRequests(t *testing.T, told, polled int) {
	t.Helper()
	const work = 20 * time.Second
	for name, tc := range map[string]struct {
		n           int
		revision    string
		listen      listenHandler
		least, most int // polls of a call
	}{
		"told":               {told, mcptask.Revision20260728, nil, 0, 3},
		"polled":             {polled, mcptask.Revision20260728, refuseListen, 15, 20},
		"polled, 2025-11-25": {polled, mcptask.Revision20251125, nil, 15, 21},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			n, tb := tc.n, &between{TB: wirecheck.TB(t), listen: tc.listen}
			var log locked
			conn := mcptasktest.Connect(tb, tc.revision, mcptasktest.Options{Server: taskserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Concurrency: n}}, napping(time.Second))
			var calls []*mcptask.Call[string]
			for range n {
				calls = append(calls, startNap(t, conn, work))
			}
			settled := 0
			for _, err := range mcptask.Settled(t.Context(), calls...) {
				if err != nil {
					t.Fatal(err)
				}
				settled++
			}
			polls, listens := tb.of("tasks/get"), tb.of("subscriptions/listen")
			t.Logf("%d polls, %d results, %d subscriptions for %d calls", polls, tb.of("tasks/result"), listens, n)
			if settled != n || polls < tc.least*n || polls > tc.most*n || listens > 1 {
				t.Errorf("%d settled, %d polls, %d subscriptions", settled, polls, listens)
			}
			if text := log.String(); strings.Contains(text, "limit") {
				t.Errorf("a limit was in the way:\n%.1000s", text)
			}
		})
	}
}

// TestProxies checks that the client learns of the end in time, whatever stands between it and the server.
func TestProxies(t *testing.T) {
	// cut ends each subscription after a while.
	cut := func(after time.Duration) listenHandler {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			ctx, cancel := context.WithTimeout(r.Context(), after)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		}
	}
	hold := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		held := &held{header: http.Header{}}
		next.ServeHTTP(held, r)
		_, _ = io.WriteString(w, held.body.String())
	}
	fail := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(w, "bad gateway", http.StatusBadGateway)
	}
	for name, tc := range map[string]struct {
		listen listenHandler
		poll   time.Duration
		late   time.Duration // at most after the end
		most   int           // subscriptions
	}{
		"one that holds back what it has":    {hold, time.Second, 1100 * time.Millisecond, 12},
		"one that cuts at once":              {cut(0), time.Second, 1100 * time.Millisecond, 14},
		"one that cuts soon":                 {cut(5 * time.Second), time.Second, 1100 * time.Millisecond, 14},
		"one that cuts a rarely polled task": {cut(time.Minute), time.Hour, 5 * time.Second, 30},
		"one that fails":                     {fail, time.Second, 1100 * time.Millisecond, 14},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			const work = 3*time.Minute + 500*time.Millisecond
			tb := &between{TB: wirecheck.TB(t), listen: tc.listen}
			conn := mcptasktest.Connect(tb, mcptask.Revision20260728, mcptasktest.Options{}, napping(tc.poll))
			var calls []*mcptask.Call[string]
			for range 5 {
				calls = append(calls, startNap(t, conn, work))
			}
			began, settled := time.Now(), 0
			for _, err := range mcptask.Settled(t.Context(), calls...) {
				if late := time.Since(began) - work; err != nil || late > tc.late {
					t.Errorf("%v, %v after the end", err, late)
				}
				settled++
			}
			if settled != len(calls) {
				t.Errorf("%d of %d settled", settled, len(calls))
			}
			if n := tb.of("subscriptions/listen"); n == 0 || n > tc.most {
				t.Errorf("%d subscriptions", n)
			}
		})
	}
}

// held is a response that is sent when it is whole.
type held struct {
	header http.Header
	body   locked
}

func (h *held) Header() http.Header         { return h.header }
func (h *held) WriteHeader(int)             {}
func (h *held) Flush()                      {}
func (h *held) Write(p []byte) (int, error) { return h.body.Write(p) }

// switched is a test whose server is replaced while its client goes on.
type switched struct {
	testing.TB
	mu       sync.Mutex
	now      http.Handler
	sessions map[string]http.Handler
}

// WrapHandler is called by mcptasktest.Connect.
func (s *switched) WrapHandler(next http.Handler) http.Handler {
	s.now, s.sessions = wirecheck.Handler(s, next), map[string]http.Handler{}
	s.Cleanup(func() { // a server that is gone would take its sessions with it
		for id, handler := range s.sessions {
			r := httptest.NewRequest(http.MethodDelete, "http://mcptasktest/mcp", nil)
			r.Header.Set("Mcp-Session-Id", id)
			r.Header.Set("MCP-Protocol-Version", mcptask.Revision20251125)
			handler.ServeHTTP(httptest.NewRecorder(), r.WithContext(origin.WithLocal(r.Context())))
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		now := s.now
		s.mu.Unlock()
		now.ServeHTTP(w, r)
		if id := w.Header().Get("Mcp-Session-Id"); id != "" {
			s.mu.Lock()
			s.sessions[id] = now
			s.mu.Unlock()
		}
	})
}

// to continues with another server.
func (s *switched) to(tasks *taskserver.Server) {
	s.Helper()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "next", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	handler := wirecheck.Handler(s, gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = handler
}

// TestRestarts replaces the server while calls wait. Their tasks go on if the store stays, and are gone
// otherwise.
func TestRestarts(t *testing.T) {
	local := func(context.Context) (string, error) { return mcptasktest.Local, nil }
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		for name, stays := range map[string]bool{"the store stays": true, "the store is lost": false} {
			bubble.Run(t, name, func(t *testing.T) {
				stores := []taskstore.Store{taskstore.NewMemory(), taskstore.NewMemory()}
				if stays {
					stores[1] = stores[0]
				}
				first, err := taskserver.New(taskserver.Options{Store: stores[0], Principal: local}, napping(time.Second))
				if err != nil {
					t.Fatal(err)
				}
				second, err := taskserver.New(taskserver.Options{Store: stores[1], Principal: local}, napping(time.Second))
				if err != nil {
					t.Fatal(err)
				}
				defer second.Close()
				tb := &switched{TB: wirecheck.TB(t)}
				conn := mcptasktest.Connect(tb, revision, mcptasktest.Options{}, napping(time.Second))
				tb.to(first)
				if _, err := conn.ListTools(t.Context()); err != nil { // in a new session, if the revision has sessions
					t.Fatal(err)
				}
				var calls []*mcptask.Call[string]
				for range 20 {
					calls = append(calls, startNap(t, conn, time.Minute))
				}
				token, _ := calls[0].Token()
				time.AfterFunc(30*time.Second, func() {
					tb.to(second)
					if err := first.Close(); err != nil {
						t.Error(err)
					}
				})
				began, settled := time.Now(), 0
				for _, err := range mcptask.Settled(t.Context(), calls...) {
					if settled++; stays && err != nil || !stays && !errors.Is(err, mcptask.ErrNotFound) {
						t.Errorf("%v after %v", err, time.Since(began))
					}
				}
				if settled != len(calls) || time.Since(began) > 5*time.Minute {
					t.Errorf("%d settled after %v", settled, time.Since(began))
				}
				again, err := mcptask.Resume[string](conn, "nap", token)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := again.Wait(t.Context()); (err == nil) != stays {
					t.Errorf("taken up again: %v", err)
				}
			})
		}
	})
}

// TestSeveralConnections settles calls of connections in both revisions. One connection of each
// revision is closed meanwhile.
func TestSeveralConnections(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var conns []mcptask.Conn
		for i := range 6 {
			conns = append(conns, mcptasktest.Connect(wirecheck.TB(t), []string{mcptask.Revision20251125, mcptask.Revision20260728}[i%2], mcptasktest.Options{}, napping(time.Hour)))
		}
		var calls []*mcptask.Call[string]
		of := map[*mcptask.Call[string]]int{}
		for i := range 60 {
			call := startNap(t, conns[i%6], 2*time.Hour)
			of[call] = i % 6
			calls = append(calls, call)
		}
		time.AfterFunc(time.Minute, func() { _, _ = conns[0].Close(), conns[1].Close() })
		began, closed := time.Now(), 0
		for call, err := range mcptask.Settled(t.Context(), append(calls, calls...)...) { // each twice
			after := time.Since(began)
			switch i := of[call]; {
			case i < 2:
				if closed++; !errors.Is(err, mcptask.ErrDisconnected) || after != time.Minute {
					t.Errorf("of a closed connection: %v after %v", err, after)
				}
			case err != nil, after < 2*time.Hour, i%2 == 1 && after > 2*time.Hour+time.Second, after > 4*time.Hour:
				t.Errorf("%v after %v", err, after)
			}
		}
		if closed != 40 {
			t.Errorf("%d calls ended with their connection", closed)
		}
	})
}
