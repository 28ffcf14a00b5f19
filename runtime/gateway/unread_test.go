package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
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
	body := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, method, params)
	}
	for name, test := range map[string]struct {
		method, body string
		most         time.Duration
	}{
		"a result":             {"tasks/get", body("tasks/get", `"taskId":"big",`), writeTime(large + 1000)},
		"a refusal":            {"tasks/get", body("tasks/get", `"taskId":"none",`), writeTime(1000)},
		"what the SDK says":    {"ping", body("ping", ""), writeTime(large)},
		"what the SDK flushes": {"prompts/list", body("prompts/list", ""), writeTime(0)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := mcptask.NewMemoryStore()
				result := fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, strings.Repeat("x", large))
				if _, err := store.Create(t.Context(), mcptask.Record{
					ID: "big", Tool: "t", Phase: mcptask.PhaseDone, CreatedAt: time.Now(), UpdatedAt: time.Now(), TerminalAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
					Outcome: &mcptask.Outcome{Kind: mcptask.OutcomeResult, Result: json.RawMessage(result)},
				}, mcptask.Quota{}); err != nil {
					t.Fatal(err)
				}
				tasks, err := mcptask.NewServer(mcptask.Options{Store: store})
				if err != nil {
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
				gone := make(chan struct{})
				listener := newPipeListener(t)
				server := &http.Server{
					Handler: New(Config{Server: tasks, Stateless: sdk, Stateful: sdk, AnyHost: true}), ReadHeaderTimeout: time.Hour,
					ConnState: func(_ net.Conn, state http.ConnState) {
						if state == http.StateClosed {
							close(gone)
						}
					},
				}
				go func() { _ = server.Serve(listener) }()
				conn := listener.dial()
				defer func() { _ = conn.Close() }()
				if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"+
					"Mcp-Method: %s\r\nMcp-Name: %s\r\nContent-Length: %d\r\n\r\n%s", test.method, map[bool]string{true: "none", false: "big"}[name == "a refusal"], len(test.body), test.body); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				select {
				case <-gone:
				case <-time.After(time.Hour):
					t.Error("it is held for ever")
				}
				if took := time.Since(began); took > test.most+time.Second || took < writeWithin {
					t.Errorf("it was held for %v", took)
				}
				_ = conn.Close()
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				if err := tasks.Close(); err != nil {
					t.Error(err)
				}
				_ = store.Close()
				synctest.Wait()
			})
		})
	}
}
