package gateway

import (
	"bufio"
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

// The timeouts that the examples set end no stream: it is silent and lives for hours.
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
	const body = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	for method, request := range map[string]string{
		http.MethodGet: "GET / HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n",
		http.MethodPost: fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"+
			"Mcp-Method: ping\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
	} {
		t.Run(method, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				tasks, err := mcptask.NewServer(mcptask.Options{})
				if err != nil {
					t.Fatal(err)
				}
				listener := newPipeListener(t)
				server := &http.Server{
					Handler:           New(Config{Server: tasks, Stateless: streams, Stateful: streams, AnyHost: true}),
					ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
				}
				go func() { _ = server.Serve(listener) }()
				conn := listener.dial()
				defer func() { _ = conn.Close() }()
				send(t, conn, request)
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
				if err := tasks.Close(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
			})
		})
	}
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}
