package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// board is a script that keeps tasks and notifies subscribers of their changes.
type board struct {
	scripted
	mu    sync.Mutex
	tasks map[string]string // members, by ID
	heard map[int]*listener
	opens int
}

type listener struct {
	ids  []string
	send func(id, message string)
}

func newBoard(t testing.TB) *board {
	b := &board{scripted: scripted{t: t, revision: wiretest.ModernRevision}, tasks: map[string]string{}, heard: map[int]*listener{}}
	b.answer = b.serve
	return b
}

// set changes a task and notifies its subscribers.
func (b *board) set(id, status string, more ...string) {
	b.mu.Lock()
	b.tasks[id] = b.task(id, status, more...)
	state := b.tasks[id]
	var tell []func()
	for _, l := range b.heard {
		if slices.Contains(l.ids, id) {
			tell = append(tell, func() { l.send("notifications/tasks", state) })
		}
	}
	b.mu.Unlock()
	for _, f := range tell {
		f()
	}
}

func (b *board) listening() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.heard {
		ids = append(ids, l.ids...)
	}
	slices.Sort(ids)
	return ids
}

func (b *board) serve(c call) reply {
	switch c.method {
	case "tools/call":
		id := fmt.Sprintf("t%d", c.n)
		b.set(id, "working")
		return b.created(id)
	case "tasks/get":
		b.mu.Lock()
		defer b.mu.Unlock()
		return result(`{%s,%s}`, complete, b.tasks[strings.Trim(c.member("taskId"), `"`)])
	case "subscriptions/listen":
		return b.listen(c)
	}
	return reply{}
}

func (b *board) listen(c call) reply {
	var ids []string
	if err := json.Unmarshal([]byte(c.member("notifications", "taskIds")), &ids); err != nil {
		b.t.Errorf("the subscription is %s", c.params)
	}
	ended := c.ctx.Done()
	if c.header == nil { // on a pipe, a notification ends the subscription
		stop := make(chan struct{})
		ended = stop
		b.work.Go(func() {
			for {
				for _, n := range b.of("notifications/cancelled") {
					if n.member("requestId") == string(c.id) {
						close(stop)
						return
					}
				}
				select {
				case <-time.After(100 * time.Millisecond):
				case <-c.ctx.Done():
					close(stop)
					return
				}
			}
		})
	}
	return reply{stream: func(send func(string)) {
		note := func(method, params string) {
			send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},%s}}`, method, c.id, params))
		}
		agreed, _ := json.Marshal(ids)
		b.mu.Lock()
		b.opens++
		n := b.opens
		b.heard[n] = &listener{ids, note}
		b.mu.Unlock()
		note("notifications/subscriptions/acknowledged", `"notifications":{"taskIds":`+string(agreed)+`}`)
		<-ended
		b.mu.Lock()
		delete(b.heard, n)
		b.mu.Unlock()
	}}
}

// TestToldAtOnce: a call learns of each change when it happens, polls rarely meanwhile, and ends its subscription when
// it ends.
func TestToldAtOnce(t *testing.T) {
	rules.Covers(t, "E-62", "E-66", "E-02")
	eachWay(t, func(t *testing.T, connect connector) {
		b := newBoard(t)
		call := start(t, connect(&b.scripted, gosdk.ClientOptions{}))
		began := time.Now()
		go func() {
			time.Sleep(40 * time.Second)
			b.set("t1", "working", `"statusMessage":"half"`)
			time.Sleep(5500 * time.Millisecond)
			b.set("t1", "completed", `"result":`+output(7))
		}()
		var seen []string
		for s, err := range call.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, fmt.Sprintf("%s %s %v", s.Status, s.Message, time.Since(began).Round(100*time.Millisecond)))
		}
		if want := "[working  0s working half 40s completed  45.5s]"; fmt.Sprint(seen) != want {
			t.Errorf("%v", seen)
		}
		wantNumber(t, call, 7)
		if polls := len(b.of("tasks/get")); polls < 3 || polls > 6 { // at its interval, there would be 45
			t.Errorf("%d polls", polls)
		}
		time.Sleep(5 * time.Second)
		if still := b.listening(); len(still) > 0 {
			t.Errorf("the subscription to %v is still open", still)
		}
		listens := b.of("subscriptions/listen")
		if len(listens) != 1 {
			t.Fatalf("%d subscriptions", len(listens))
		}
		c, get := listens[0], b.of("tasks/get")[0]
		if c.member("notifications") != `{"taskIds":["t1"]}` {
			t.Errorf("%s", c.params)
		}
		for _, key := range []string{"protocolVersion", "clientCapabilities", "clientInfo"} {
			own, other := c.member("_meta", "io.modelcontextprotocol/"+key), get.member("_meta", "io.modelcontextprotocol/"+key)
			if !wiretest.SameJSON(own, other) {
				t.Errorf("%s is %s, and %s elsewhere", key, own, other)
			}
		}
		if c.header != nil && (c.header.Get("Mcp-Method") != "subscriptions/listen" || c.header.Get("MCP-Protocol-Version") != wiretest.ModernRevision ||
			c.header.Get("Accept") != get.header.Get("Accept") || c.header.Get("Content-Type") != "application/json" || c.header.Get("Mcp-Name") != "") {
			t.Errorf("%v", c.header)
		}
	})
}

// TestThousandShareOne: a thousand calls share one subscription, and the next thousand share another.
func TestThousandShareOne(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand calls take long")
	}
	eachWay(t, func(t *testing.T, connect connector) {
		b := newBoard(t)
		conn := connect(&b.scripted, gosdk.ClientOptions{})
		const n = 1001
		var calls []*mcptask.Call[number]
		for range n {
			calls = append(calls, start(t, conn))
		}
		go func() {
			time.Sleep(20 * time.Second)
			for i := range n {
				b.set(fmt.Sprintf("t%d", i+1), "completed", `"result":`+output(i))
			}
		}()
		began, settled := time.Now(), 0
		for _, err := range mcptask.Settled(t.Context(), calls...) {
			if err != nil {
				t.Fatal(err)
			}
			settled++
		}
		if settled != n || time.Since(began) != 20*time.Second {
			t.Errorf("%d settled after %v", settled, time.Since(began))
		}
		if opens, polls := len(b.of("subscriptions/listen")), len(b.of("tasks/get")); opens != 2 || polls > 3*n {
			t.Errorf("%d subscriptions, %d polls", opens, polls)
		}
	})
}

// TestNewTasksJoin: later tasks join the subscription, and no earlier task is missing from it meanwhile.
func TestNewTasksJoin(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := newBoard(t)
		conn := b.connect(gosdk.ClientOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		wait := func() {
			call := start(t, conn)
			waiting.Go(func() {
				if _, err := call.Wait(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
			})
		}
		wait()
		time.Sleep(500 * time.Millisecond)
		for i := range 20 { // t1 is always subscribed
			wait()
			for range 10 {
				time.Sleep(100 * time.Millisecond)
				if ids := b.listening(); !slices.Contains(ids, "t1") {
					t.Fatalf("after call %d the subscription has %v", i+2, ids)
				}
			}
		}
		time.Sleep(5 * time.Second)
		if ids, opens := b.listening(), len(b.of("subscriptions/listen")); len(ids) != 21 || opens > 23 {
			t.Errorf("%d tasks after %d subscriptions", len(ids), opens)
		}
		cancel()
		waiting.Wait()
		time.Sleep(5 * time.Second)
		if ids := b.listening(); len(ids) != 0 {
			t.Errorf("no caller waits, but the subscription has %v", ids)
		}
	})
}

// TestFallsBackToPolling: whatever happens to the subscription, the client polls the task at the server's interval.
func TestFallsBackToPolling(t *testing.T) {
	rules.Covers(t, "E-25", "E-18", "E-27")
	acknowledged := func(c string, filter string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":%s}}`, c, filter)
	}
	for name, tc := range map[string]struct {
		reply func(call) reply
		most  int // subscriptions in two minutes
	}{
		"no such method":        {func(call) reply { return refusal(wiretest.MethodNotFound, "") }, 1},
		"a missing capability":  {func(call) reply { return refusal(wiretest.MissingCapability, `{"requiredCapabilities":{}}`) }, 1},
		"the draft's code":      {func(call) reply { return refusal(-32003, `{"requiredCapabilities":{"extensions":{}}}`) }, 1},
		"no tasks among them":   {func(c call) reply { return answered(c, acknowledged(string(c.id), `{}`)) }, 1},
		"not this task":         {func(c call) reply { return answered(c, acknowledged(string(c.id), `{"taskIds":[]}`)) }, 1},
		"invalid params":        {func(call) reply { return refusal(wiretest.InvalidParams, "") }, 7},
		"silence":               {silent, 6},
		"ended at once":         {func(call) reply { return reply{stream: func(func(string)) {}} }, 7},
		"ended with its result": {func(call) reply { return result(`{%s}`, complete) }, 7},
		"no protocol":           {func(call) reply { return reply{text: "gone", status: 404} }, 7},
		"acknowledged, and cut": {func(c call) reply {
			return reply{stream: func(send func(string)) { send(acknowledged(string(c.id), `{"taskIds":["t1"]}`)) }}
		}, 7},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			b := newBoard(t)
			b.on("subscriptions/listen", tc.reply)
			call := start(t, b.connect(gosdk.ClientOptions{}))
			time.AfterFunc(2*time.Minute, func() { b.set("t1", "completed", `"result":`+output(1)) })
			if _, err := call.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			polls := b.of("tasks/get")
			if len(polls) < 105 {
				t.Errorf("%d polls", len(polls))
			}
			for _, gap := range gaps(polls) {
				if gap < time.Second {
					t.Errorf("polled again after %v", gap)
				}
			}
			if n := len(b.of("subscriptions/listen")); n < 1 || n > tc.most {
				t.Errorf("%d subscriptions", n)
			}
			if n := len(polls); len(b.of("tasks/get")) != n { // E-27: no poll after the end
				t.Error("polled after the end")
			}
		}))
	}
}

// answered is a stream that sends a message and stays open.
func answered(c call, message string) reply {
	return reply{stream: func(send func(string)) {
		send(message)
		<-c.ctx.Done()
	}}
}

// TestSilentSubscription: a poll finds a change that the server does not notify of.
func TestSilentSubscription(t *testing.T) {
	rules.Covers(t, "C-46", "C-47")
	bubble.Test(t, func(t *testing.T) {
		b := newBoard(t)
		call := start(t, b.connect(gosdk.ClientOptions{}))
		began := time.Now()
		time.AfterFunc(50*time.Second, func() {
			b.mu.Lock() // without a notification
			defer b.mu.Unlock()
			b.tasks["t1"] = b.task("t1", "completed", `"result":`+output(1))
		})
		if _, err := call.Wait(t.Context()); err != nil || time.Since(began) > 62*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
