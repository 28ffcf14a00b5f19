package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// besieged is a server whose SDK answers each request with as many bytes as its header "Size" says.
type besieged struct {
	t       *testing.T
	address string
	gateway *Gateway
}

type callerKey struct{}

// besiege serves requests in memory. The header "Caller" is the principal, and "Address" the address of a caller that is
// not on this machine. Run it in a bubble.
func besiege(t *testing.T) *besieged {
	t.Helper()
	sdk := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.Header.Get("Size"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(strings.Repeat(" ", size) + "{}"))
	})
	g := New(Config{Server: newServer(t, taskserver.Options{}).Backend(), Stateless: sdk, Stateful: sdk, AnyHost: true, Principal: func(ctx context.Context) (string, error) {
		principal, _ := ctx.Value(callerKey{}).(string)
		return principal, nil
	}})
	listener := memnet.Listen()
	server := &http.Server{ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if address := r.Header.Get("Address"); address != "" {
			r.RemoteAddr = address
		}
		g.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, r.Header.Get("Caller"))))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // net/http lingers
		_, bounds := (&share{g: g, remote: new(http.Request)}).bounds(ofBodies)
		if give, full := g.memory.Take(t.Context(), 0, g.memoryBound(), 0, bounds...); give == nil {
			t.Errorf("bound %d is still taken", full)
		}
	})
	return &besieged{t, listener.Addr().String(), g}
}

// request is a request with so many bytes of a body, of which so many are not sent.
type request struct {
	caller                string
	body, missing, result int
	chunked               bool
	header, text          string
}

// send sends a request on a connection of its own. It does not wait for the answer.
func (b *besieged) send(r request) (conn net.Conn) {
	b.t.Helper()
	conn, err := memnet.Dial(b.t.Context(), "tcp", b.address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	body := r.text
	if body == "" {
		body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none","arguments":{"x":"`
		body += strings.Repeat("x", max(0, r.body-len(body)-5)) + `"}}}`
	}
	head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nCaller: %s\r\nSize: %d\r\n%s", r.caller, r.result, r.header)
	if r.chunked {
		head += fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(body))
		body += "\r\n0\r\n\r\n"
	} else {
		head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	}
	go func() { _, _ = io.WriteString(conn, head+body[:len(body)-r.missing]) }()
	return conn
}

// read returns the status, the header and the length of an answer. The status is 0 if the connection has ended.
func (b *besieged) read(conn net.Conn) (status int, header http.Header, body string) {
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, ""
	}
	data, _ := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, strings.TrimSpace(string(data))
}

// want checks the status of an answer and how long it takes.
func (b *besieged) want(conn net.Conn, status int, within time.Duration) (header http.Header, body string) {
	b.t.Helper()
	began := time.Now()
	got, header, body := b.read(conn)
	if took := time.Since(began); got != status || took > within {
		b.t.Errorf("HTTP %d after %v, want %d within %v: %.300s", got, took, status, within, body)
	}
	return header, body
}

const largest = 4 << 20

// TestBodiesTakeMemory checks that bodies which do not end take room from their account only, that small
// requests go on, and that a body waits for room: until another one is handled, or has been too slow, or
// it is refused.
func TestBodiesTakeMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := besiege(t)
		var slow []net.Conn
		for _, chunked := range []bool{false, true} {
			slow = append(slow, b.send(request{caller: "mallory", body: largest - 10, missing: 20, chunked: chunked}))
		}
		synctest.Wait()
		b.want(b.send(request{caller: "mallory", body: smallMessage}), http.StatusOK, 0)
		b.want(b.send(request{caller: "alice", body: largest - 10}), http.StatusOK, 0)
		b.want(b.send(request{body: largest - 10}), http.StatusOK, 0)
		next := b.send(request{caller: "mallory", body: 20_000})
		b.want(next, http.StatusOK, 6*time.Second) // the slowest has lost its room
		refused := 0
		for _, conn := range slow {
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			if status, _, _ := b.read(conn); status == http.StatusRequestTimeout {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d slow bodies were refused", refused)
		}
	})
}

// TestBodiesWaitInTurn checks that bodies which come at a good rate all get room, one after the other,
// and that one which would wait for too long is told so.
func TestBodiesWaitInTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := besiege(t)
		conns := make([]net.Conn, 20)
		for i := range conns {
			conns[i] = b.send(request{caller: "alice", body: largest - 10})
		}
		for _, conn := range conns {
			b.want(conn, http.StatusOK, 0)
		}
		for range 2 { // they hold the room, and are not too slow
			conn := b.send(request{caller: "alice", body: largest - 10, missing: largest / 2})
			go func() {
				for range 30 {
					time.Sleep(time.Second)
					_, _ = io.WriteString(conn, strings.Repeat("x", 65<<10))
				}
			}()
		}
		synctest.Wait()
		header, body := b.want(b.send(request{caller: "alice", body: largest - 10}), http.StatusServiceUnavailable, 10*time.Second)
		if header.Get("Retry-After") == "" || !strings.Contains(body, `"limit":"memory"`) {
			t.Errorf("%v %.300s", header, body)
		}
	})
}

// TestAnswersTakeMemory checks that answers which nobody reads take room from their account only, that
// small ones go on, and that the next large one gets the room of the slowest.
func TestAnswersTakeMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := besiege(t)
		const large = 5 << 20
		for range 2 {
			b.send(request{caller: "mallory", result: large})
		}
		synctest.Wait()
		b.want(b.send(request{caller: "mallory", result: smallMessage - 10}), http.StatusOK, 0)
		b.want(b.send(request{caller: "alice", result: large}), http.StatusOK, 0)
		next := b.send(request{caller: "mallory", result: large})
		synctest.Wait()
		full := b.send(request{caller: "mallory", result: large}) // too much would wait
		header, body := b.want(full, http.StatusServiceUnavailable, 0)
		if header.Get("Retry-After") == "" || !strings.Contains(body, `"limit":"memory"`) || !strings.Contains(body, `"id":1`) {
			t.Errorf("%v %.300s", header, body)
		}
		b.want(next, http.StatusOK, 10*time.Second)
	})
}

// TestValuesTakeMemory checks that what the SDK makes of a body counts too.
func TestValuesTakeMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := besiege(t)
		var mu sync.Mutex
		var held, most int
		inner := b.gateway.config.Stateful
		b.gateway.config.Stateful = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			held++
			most = max(most, held)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			held--
			mu.Unlock()
			inner.ServeHTTP(w, r)
		})
		var conns []net.Conn
		for range 8 { // each takes 13 MB of 32
			conns = append(conns, b.send(request{caller: "mallory", text: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none","arguments":{"x":[` + strings.Repeat("1,", 100_000) + `1]}}}`}))
		}
		for _, conn := range conns {
			b.want(conn, http.StatusOK, 10*time.Second)
		}
		if most != 2 {
			t.Errorf("%d at once", most)
		}
	})
}

// TestMemoryOfAnAddress checks that the calls of one anonymous caller leave memory for those of other addresses as long as
// they last, and for callers with a principal, also calls of which one alone needs more than there is.
func TestMemoryOfAnAddress(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := besiege(t)
		inner := b.gateway.config.Stateful
		b.gateway.config.Stateful = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Last") != "" {
				time.Sleep(time.Minute)
			}
			inner.ServeHTTP(w, r)
		})
		const lasts, other = "Last: yes\r\nAddress: 192.0.2.1:1\r\n", "Address: 192.0.2.2:1\r\n"
		b.send(request{header: lasts, text: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none","arguments":{"x":[` + strings.Repeat("1,", 1_000_000) + `1]}}}`})
		synctest.Wait() // until its values have taken all that its address may have
		for range 10 {
			b.send(request{header: lasts, body: 1_000_000})
		}
		synctest.Wait()
		b.want(b.send(request{caller: "alice", body: 1_000_000}), http.StatusOK, 0)
		b.want(b.send(request{header: other, body: 1_000_000}), http.StatusOK, 0)
		_, body := b.want(b.send(request{header: lasts, body: 1_000_000}), http.StatusServiceUnavailable, 20*time.Second) // for its body, then for its values
		if !strings.Contains(body, `"scope":"address"`) {
			t.Errorf("%.300s", body)
		}
		time.Sleep(time.Hour) // until the calls have ended
	})
}

// TestMethodsThatMustBeSmall checks that no message is large for which there is no reason.
func TestMethodsThatMustBeSmall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := besiege(t)
		for _, method := range []string{"ping", "prompts/get", "resources/read", "completion/complete", "no/such", "tools/list", "tasks/get", "notifications/progress", "notifications/made_up"} {
			id := `"id":1,`
			if strings.HasPrefix(method, "notifications/") {
				id = ""
			}
			for name, value := range map[string]string{
				"bytes":   `"` + strings.Repeat("x", maxLastingBytes) + `"`,
				"values":  "[" + strings.Repeat("1,", maxLastingValues) + "1]",
				"members": "{" + strings.Repeat(`"x":1,`, maxLastingValues) + `"x":1}`,
			} {
				text := fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":{"x":%s}}`, id, method, value)
				if _, body := b.want(b.send(request{text: text}), http.StatusRequestEntityTooLarge, 0); body == "" {
					t.Errorf("%s with too many %s", method, name)
				}
			}
		}
		many := new(strings.Builder)
		for i := range maxMembers + 1 {
			fmt.Fprintf(many, `"%d":1,`, i)
		}
		for _, text := range []string{`{%s"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s"name":"x"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{%s"x":1}}}`} {
			if _, body := b.want(b.send(request{text: fmt.Sprintf(text, many)}), http.StatusBadRequest, 0); !strings.Contains(body, "more than 10000 members") {
				t.Errorf("%s", body)
			}
		}
	})
}

// TestContentEncoding checks that a compressed body is refused as such.
func TestContentEncoding(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := besiege(t)
		header, body := b.want(b.send(request{header: "Content-Encoding: gzip\r\n", text: "\x1f\x8b\x08\x00"}), http.StatusUnsupportedMediaType, 0)
		if header.Get("Accept-Encoding") != "identity" || !strings.Contains(body, `Content-Encoding \"gzip\"`) {
			t.Errorf("%v %.300s", header, body)
		}
		b.want(b.send(request{header: "Content-Encoding: identity\r\n"}), http.StatusOK, 0)
	})
}

// counted counts how many do something at once.
type counted struct{ now, most atomic.Int32 }

func (c *counted) during(lasts time.Duration) {
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	time.Sleep(lasts)
}

// slowOutput is a tool's output that takes a second to encode.
type slowOutput struct{ encoding *counted }

// MarshalJSON implements json.Marshaler.
func (o slowOutput) MarshalJSON() ([]byte, error) {
	o.encoding.during(time.Second)
	return []byte(`{}`), nil
}

// TestCallsBeginInTurn checks that only a few calls without a task run their handler at once, until it has
// returned and its result is encoded. A handler that takes long makes way for others, but its result is encoded in turn.
func TestCallsBeginInTurn(t *testing.T) {
	for name, test := range map[string]struct {
		lasts         time.Duration
		slots         int
		most, encoded int32
	}{
		"quick":                  {startTime / 2, 0, taskserver.DefaultConcurrency / startShare, taskserver.DefaultConcurrency / startShare},
		"quick, many task slots": {startTime / 2, 160, 20, 20},
		"quick, one task slot":   {startTime / 2, 1, fewestStarts, fewestStarts},
		"long":                   {time.Minute, 0, 100, taskserver.DefaultConcurrency / startShare},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var running, encoding counted
			tool := mcptask.NewTool(mcptask.ToolSpec{Name: "tool", InputSchema: `{"type":"object"}`}, func(context.Context, *mcptask.Task, struct{}) (slowOutput, error) {
				running.during(test.lasts)
				return slowOutput{&encoding}, nil
			})
			g := New(Config{Server: newServer(t, taskserver.Options{Concurrency: test.slots}, tool).Backend()})
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					share := &share{g: g}
					defer share.release()
					flow := &Flow{Tool: "tool", Call: taskserver.CallRequest{Mode: taskserver.ModePlain}, share: share}
					if reply, err := flow.Run(t.Context(), g.server, "tool", nil, nil); err != nil || reply.Outcome == nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if running.most.Load() != test.most || encoding.most.Load() != test.encoded {
				t.Errorf("%d ran at once and %d results were encoded, want %d and %d", running.most.Load(), encoding.most.Load(), test.most, test.encoded)
			}
		})
	}
}
