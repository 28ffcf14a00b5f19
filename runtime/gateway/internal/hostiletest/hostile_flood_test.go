package hostiletest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestHostileFlood sends requests as fast as possible. They leave behind only the tasks that they
// have created, and delay no other client for long.
func TestHostileFlood(t *testing.T) {
	eachAttack(t, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		// Tasks that are created and never polled.
		const created = 40
		ids := make([]string, created)
		wiretest.RunTogether(created, func(i int) { ids[i] = mallory.Create("secret_work", nil) })
		began := time.Now()
		a.victim.Task("tasks/get", a.asking).OK()
		if took := time.Since(began); took > wiretest.Patience {
			t.Errorf("the victim waited %v", took)
		}
		// Tasks that are polled, cancelled and answered by any caller. A refused poll rate is an error like any other
		// here.
		wiretest.RunTogether(200, func(i int) {
			method := []string{"tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/get"}[i%5]
			id := ids[i%created]
			if i%3 == 0 {
				id = a.working
			}
			mallory.Call(method, map[string]any{"taskId": id, "inputResponses": map[string]any{fmt.Sprint("key", i): map[string]any{"action": "decline"}}})
		})
		for _, id := range ids {
			mallory.Call("tasks/cancel", map[string]any{"taskId": id})
		}
		for _, id := range ids {
			mallory.Until(id, "cancelled")
		}
		a.tasksBefore += created
		// Refused calls create no task.
		wiretest.RunTogether(60, func(i int) {
			mallory.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": map[string]any{"repository": i}, "task": map[string]any{"ttl": 1000}})
			mallory.Call("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{}, "task": map[string]any{}})
			mallory.Call("tools/call", map[string]any{"name": fmt.Sprint("no such ", i), "arguments": map[string]any{}, "task": map[string]any{}})
		})
		for _, record := range a.records("mallory") {
			if record.Tool != "secret_work" {
				t.Errorf("a task of %s", record.Tool)
			}
		}
	})
}

// TestHostileSessionsLeftOpen checks that sessions which are never closed end by themselves,
// together with their tasks' state and their streams.
func TestHostileSessionsLeftOpen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var g *gateway.Gateway
		store := taskstore.NewMemory()
		url, tasks := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Gateway: &g, Options: taskserver.Options{Store: store},
			HTTP: &mcp.StreamableHTTPOptions{SessionTimeout: 4 * time.Second}, Tools: []mcptask.Tools{wiretest.AskTools()}})
		warm := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		id := warm.Create("ask", wiretest.AskArguments("one"))
		wiretest.ClosePeer(t, warm)
		check := wiretest.Goroutines(t)
		const sessions = 100
		wiretest.RunTogether(sessions, func(i int) {
			p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
			p.Task("tasks/get", id).OK() // each session knows the task now, and could be asked
			if i%10 == 0 {
				f := p.OpenGet()
				f.Stop() // dropped without a DELETE
			}
			p.Client.CloseIdleConnections()
		})
		wiretest.Eventually(t, "the gateway holds nothing", func() bool { return g.Counts() == gateway.Counts{} })
		if r, err := tasks.Backend().Peek(id); err != nil || r.Done() {
			t.Errorf("the task has ended: %v", err)
		}
		check()
		_ = store.Close()
	})
}

// TestHostileStreams opens many streams for one client and drops them all at once.
func TestHostileStreams(t *testing.T) {
	eachAttack(t, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		ctx, drop := context.WithCancel(t.Context())
		var opened, all sync.WaitGroup
		var id string
		if a.revision == wiretest.LegacyRevision {
			id = mallory.Create("secret_ask", nil)
			a.tasksBefore++
		}
		const streams = 100
		for range streams {
			opened.Add(1)
			all.Go(func() {
				method, params := "tasks/result", map[string]any{"taskId": id}
				if a.revision == wiretest.ModernRevision {
					method, params = "subscriptions/listen", map[string]any{"notifications": map[string]any{"toolsListChanged": true}}
				}
				body, edits := mallory.Request(method, params)
				client := &http.Client{Transport: mallory.Client.Transport}
				res, err := client.Do(mallory.NewRequest(ctx, http.MethodPost, body, edits...))
				opened.Done()
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			})
		}
		time.AfterFunc(time.Second, drop) // streams without headers yet are dropped too
		opened.Wait()
		all.Wait()
		drop()
		if id != "" {
			a.settled(func() bool { return a.gateway.Counts().Streams == a.before.Streams })
			mallory.Task("tasks/cancel", id).OK()
		}
	})
}

// dial opens a bare connection to the server.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	where, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := memnet.Dial(t.Context(), "tcp", where.Host)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// raw returns the bytes of a request. Its Content-Length is that of the body, unless the headers say
// otherwise.
func raw(p *wiretest.Peer, verb, proto, body string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s / %s\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n", verb, proto, p.Token)
	if p.Session != "" {
		fmt.Fprintf(&b, "Mcp-Session-Id: %s\r\n", p.Session)
	}
	fmt.Fprintf(&b, "MCP-Protocol-Version: %s\r\n", p.Revision)
	length := true
	for _, h := range headers {
		b.WriteString(h + "\r\n")
		name := strings.ToLower(h)
		length = length && !strings.HasPrefix(name, "content-length") && !strings.HasPrefix(name, "transfer-encoding")
	}
	if length && verb == http.MethodPost {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

// TestHostileSlowBody sends a body slowly, or never. It delays no other client and is forgotten
// with its connection.
func TestHostileSlowBody(t *testing.T) {
	eachAttack(t, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		body, _ := mallory.Request("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}})
		var slow []net.Conn
		for i := range 50 {
			conn := dial(t, a.url)
			slow = append(slow, conn)
			sent := raw(mallory, http.MethodPost, "HTTP/1.1", body, "Mcp-Method: tools/call", "Mcp-Name: ponder")
			sent = sent[:len(sent)-1-i*len(body)/60] // all bytes but the last
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 { // while the body is incomplete
			a.victim.Task("tasks/get", a.working).OK()
		}
		for _, conn := range slow {
			_ = conn.Close()
		}
		a.victim.Client.CloseIdleConnections()
	})
}

// TestHostileSlowReader uses a client that never reads its streams while its tasks ask and
// continue. All other clients are served.
func TestHostileSlowReader(t *testing.T) {
	runAttack(t, wiretest.LegacyRevision, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		var deaf []net.Conn
		open := func(request string) {
			conn := dial(t, a.url)
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			deaf = append(deaf, conn)
		}
		open(raw(mallory, http.MethodGet, "HTTP/1.1", ""))
		for i := range 20 {
			id := mallory.Create("ask", wiretest.AskArguments("one", "two", "three"))
			a.tasksBefore++
			body, _ := mallory.Request("tasks/result", map[string]any{"taskId": id})
			open(raw(mallory, http.MethodPost, "HTTP/1.1", body))
			a.victim.Task("tasks/get", a.working).OK()
			if i%2 == 0 {
				mallory.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":"mcptask/%s/one","result":{"action":"decline"}}`, id))
			}
		}
		for _, record := range a.records("mallory") {
			mallory.Call("tasks/cancel", map[string]any{"taskId": record.ID})
		}
		for _, conn := range deaf {
			_ = conn.Close()
		}
	})
}

// TestEndedTasksAreForgotten checks that a session forgets a task that has ended, also if it ends
// before its reply is sent.
func TestEndedTasksAreForgotten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var g *gateway.Gateway
		slow := wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
			result, err := next()
			time.Sleep(20 * time.Millisecond) // the task ends meanwhile
			return result, err
		})
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Gateway: &g, Middleware: slow})
		p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		for range 10 {
			p.Create("ponder", nil)
		}
		wiretest.Eventually(t, "the gateway watches no task", func() bool { return g.Counts().Watched == 0 })
		wiretest.ClosePeer(t, p)
	})
}
