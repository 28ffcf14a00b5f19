package hostiletest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// cutter is a proxy that cuts each connection after a number of bytes in one direction.
type cutter struct {
	listener net.Listener
	server   string

	mu       sync.Mutex
	up, down int64 // where it cuts; 0 means never
	passed   [2]int64
	open     int
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	listener := memnet.Listen()
	c := &cutter{listener: listener, server: server}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			c.open++
			c.mu.Unlock()
			go c.pass(conn)
		}
	}()
	return c
}

func (c *cutter) url() string { return "http://" + c.listener.Addr().String() }

// at sets where connections are cut from now on, and returns how many bytes had passed.
func (c *cutter) at(up, down int64) (passedUp, passedDown int64) {
	c.mu.Lock()
	for c.open > 0 {
		c.mu.Unlock()
		time.Sleep(time.Millisecond)
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	passed := c.passed
	c.up, c.down, c.passed = up, down, [2]int64{}
	return passed[0], passed[1]
}

func (c *cutter) pass(client net.Conn) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open--
	}()
	c.mu.Lock()
	up, down := c.up, c.down
	c.mu.Unlock()
	server, err := memnet.Dial(context.Background(), "tcp", c.server)
	if err != nil {
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	through := func(direction int, to io.Writer, from io.Reader, most int64) {
		defer func() { _, _ = client.Close(), server.Close() }()
		if most > 0 {
			from = io.LimitReader(from, most)
		}
		n, _ := io.Copy(to, from)
		c.mu.Lock()
		c.passed[direction] += n
		c.mu.Unlock()
	}
	both.Go(func() { through(0, server, client, up) })
	both.Go(func() { through(1, client, server, down) })
	both.Wait()
}

// TestHostileCuts cuts the connection every few bytes of an exchange, in either direction. The
// server keeps only whole tasks.
func TestHostileCuts(t *testing.T) {
	eachAttack(t, wiretest.Setup{}, func(t *testing.T, a *attack, direct *wiretest.Peer) {
		c := newCutter(t, a.url[len("http://"):])
		transport := memnet.NewTransport()
		transport.DisableKeepAlives = true
		client := &http.Client{Timeout: wiretest.Patience, Transport: transport}
		cut := &wiretest.Peer{T: t, URL: c.url(), Revision: a.revision, Token: direct.Token, Session: direct.Session, Caps: direct.Caps, Client: client}
		cut.IDs.Store(1000)
		asked := direct.Create("secret_ask", nil)
		a.tasksBefore++
		type exchanged struct {
			verb, method string
			params       map[string]any
		}
		exchanges := map[string]exchanged{
			"create": {http.MethodPost, "tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}}},
			"get":    {http.MethodPost, "tasks/get", map[string]any{"taskId": asked}},
			"list":   {http.MethodPost, "tools/list", nil},
		}
		if a.revision == wiretest.LegacyRevision {
			exchanges["result"] = exchanged{http.MethodPost, "tasks/result", map[string]any{"taskId": asked}}
			exchanges["stream"] = exchanged{http.MethodGet, "", nil}
		}
		for name, x := range exchanges {
			// exchange reads until the server or the cut ends it, or for a while.
			exchange := func(most time.Duration) {
				ctx, cancel := context.WithTimeout(t.Context(), most)
				defer cancel()
				body, edits := "", []wiretest.Edit(nil)
				if x.verb == http.MethodPost {
					body, edits = cut.Request(x.method, x.params)
				}
				res, err := client.Do(cut.NewRequest(ctx, x.verb, body, edits...))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			waits := name == "result" || name == "stream"
			most := wiretest.Patience // the cut ends it
			if waits {
				most = 60 * time.Millisecond // until no more bytes come
			}
			c.at(0, 0)
			var up, down int64
			for whole := max(most, time.Second); up == 0 || down == 0; whole *= 2 {
				if whole > 2*wiretest.Patience {
					t.Fatalf("%s: %d bytes up, %d down", name, up, down)
				}
				exchange(whole)
				up, down = c.at(0, 0)
			}
			const cuts = 40
			for i := range int64(cuts) {
				c.at(1+i*up/cuts, 0)
				exchange(most)
				c.at(0, 1+i*down/cuts)
				exchange(most)
			}
			c.at(0, 0)
		}
		if err := c.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		client.CloseIdleConnections()
		direct.Task("tasks/cancel", asked).OK()
		for _, record := range a.records("mallory") {
			switch {
			case record.Tool == "secret_ask":
			case record.Tool != "ponder":
				t.Errorf("a task of %s", record.Tool)
			default: // every created task is whole, whether or not its client knows it
				direct.Until(record.ID, "completed")
				a.tasksBefore++
			}
		}
	})
}
