package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// pipeListener accepts connections within the process, which buffer nothing.
type pipeListener struct {
	conns chan net.Conn
	done  context.Context
	close context.CancelFunc
}

func newPipeListener(t *testing.T) *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn)}
	l.done, l.close = context.WithCancel(t.Context())
	return l
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error { l.close(); return nil }

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// dial connects.
func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// TestUnreadAnswers checks that an answer which the client does not read ends its connection,
// whatever its size and whether the gateway or the SDK writes it.
func TestUnreadAnswers(t *testing.T) {
	const large = 3 << 20
	for name, test := range map[string]struct {
		method, task string
		most         time.Duration
	}{
		"a result":             {"tasks/get", "big", writeTime(large + 1000)},
		"a refusal":            {"tasks/get", "none", writeTime(1000)},
		"what the SDK says":    {"ping", "big", writeTime(large)},
		"what the SDK flushes": {"prompts/list", "big", writeTime(0)},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			conn, gone := serveLarge(t, large)
			postRaw(t, conn, test.method, test.task)
			began := time.Now()
			select {
			case <-gone:
			case <-time.After(time.Hour):
				t.Error("it is held for ever")
			}
			if took := time.Since(began); took > test.most+time.Second || took < writeWithin {
				t.Errorf("it was held for %v", took)
			}
		})
	}
}

// TestSlowReader checks that a client that reads a large answer at 20 kB a second gets all of it.
func TestSlowReader(t *testing.T) {
	const large = 3 << 20
	bubble.Test(t, func(t *testing.T) {
		conn, _ := serveLarge(t, large)
		postRaw(t, conn, "tasks/get", "big")
		response, err := http.ReadResponse(bufio.NewReader(slowReader{conn}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, response.Body); err != nil || n < large {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// slowReader reads at most 4 kB each 200 ms.
type slowReader struct{ io.Reader }

// Read implements io.Reader.
func (r slowReader) Read(data []byte) (int, error) {
	time.Sleep(200 * time.Millisecond)
	return r.Reader.Read(data[:min(len(data), 4000)])
}

// serveLarge serves the task big, whose result has so many bytes, and an SDK that answers with it. It returns a
// connection, and what is closed when the server ends it.
func serveLarge(t *testing.T, large int) (conn net.Conn, gone <-chan struct{}) {
	t.Helper()
	store := taskstore.NewMemory()
	result := fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, strings.Repeat("x", large))
	if _, err := store.Create(t.Context(), taskstore.Record{
		ID: "big", Tool: "t", Phase: taskstore.PhaseDone, CreatedAt: time.Now(), UpdatedAt: time.Now(), TerminalAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
		Outcome: &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: json.RawMessage(result)},
	}, taskstore.Quota{}); err != nil {
		t.Fatal(err)
	}
	sdk := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Mcp-Method") == "prompts/list" {
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			return
		}
		_, _ = w.Write([]byte(result))
	})
	closed := make(chan struct{})
	listener := newPipeListener(t)
	server := &http.Server{
		Handler: New(Config{Server: newServer(t, taskserver.Options{Store: store}).Backend(), Stateless: sdk, Stateful: sdk, AnyHost: true}), ReadHeaderTimeout: time.Hour,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(closed)
			}
		},
	}
	go func() { _ = server.Serve(listener) }()
	conn = listener.dial()
	t.Cleanup(func() {
		_ = conn.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
	return conn, closed
}

// postRaw writes a request of 2026-07-28 to a connection.
func postRaw(t *testing.T, conn net.Conn, method, task string) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"taskId":%q,%s}}`, method, task, taskMeta)
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"+
		"Mcp-Method: %s\r\nMcp-Name: %s\r\nContent-Length: %d\r\n\r\n%s", method, task, len(body), body); err != nil {
		t.Fatal(err)
	}
}

// TestStreamsOutliveTimeouts checks that the timeouts which the examples set do not end a stream that
// is silent for hours.
func TestStreamsOutliveTimeouts(t *testing.T) {
	const silence = time.Hour
	streams := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			_, _ = w.Write([]byte(": still here\n\n"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(silence):
			case <-r.Context().Done():
				return
			}
		}
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		bubble.Run(t, method, func(t *testing.T) {
			listener := newPipeListener(t)
			g := New(Config{Server: newServer(t, taskserver.Options{}).Backend(), Stateless: streams, Stateful: streams, AnyHost: true})
			g.sessions.add(&session{id: "s"}, func() {})
			server := &http.Server{
				Handler:           g,
				ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
			}
			go func() { _ = server.Serve(listener) }()
			conn := listener.dial()
			defer func() { _ = conn.Close() }()
			if method == http.MethodPost {
				postRaw(t, conn, "ping", "")
			} else if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\nMcp-Session-Id: s\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(conn)
			began := time.Now()
			for range 3 {
				for lines.Scan() && !strings.Contains(lines.Text(), "still here") {
				}
			}
			if took := time.Since(began); lines.Err() != nil || took != 2*silence {
				t.Errorf("it lived for %v: %v", took, lines.Err())
			}
			_ = conn.Close()
			_ = server.Close()
			synctest.Wait()
		})
	}
}
