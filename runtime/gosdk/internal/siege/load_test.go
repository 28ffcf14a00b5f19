//go:build long

package siege_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk/internal/siege"
)

// Limits for the growth from the first quarter of the siege to any later one.
const (
	siegeHeap       = 40 << 20 // bytes: room for what three attackers may store
	siegeGoroutines = 40
)

// TestSiege attacks a server in every way at once, while well-behaved clients use it. Their calls all succeed, and the
// server keeps no more after one quarter of the time than after another. The test takes four seconds, or as long as
// SIEGETIME says, such as 10m: make siege.
func TestSiege(t *testing.T) {
	lasts := 4 * time.Second
	if text := os.Getenv("SIEGETIME"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	// Quotas are small and tasks are kept for a short time. So in a long siege, everything that grows has grown in the
	// first quarter.
	b := besiege(t, config{Bearer: true, TTL: time.Minute, Limits: `{"Tasks":5000,"Running":50,"Waiting":50,"Sessions":4,"Bytes":8388608}`})
	var first state
	for quarter := range 4 {
		siegeQuarter(t, b, lasts/4)
		if t.Failed() {
			return
		}
		s := b.settle("the siege leaves something open", func(s state) bool {
			return s.Counts.Waiting == 0 && s.Counts.Flows == 0 && s.Counts.Streams == 0 &&
				(quarter == 0 || s.Goroutines <= first.Goroutines+siegeGoroutines && s.Heap <= first.Heap+siegeHeap)
		})
		if quarter == 0 {
			first = s
		}
		t.Logf("after quarter %d: heap %d KiB, %d goroutines, %d descriptors, peak %d MiB, %v of processor time, %d bytes logged",
			quarter+1, s.Heap>>10, s.Goroutines, b.descriptors(), b.resident("VmHWM")>>20, b.cpu()-b.used, s.Logged)
		for _, text := range s.Panics {
			t.Errorf("it panicked: %s", text)
		}
	}
	b.before.Goroutines += siegeGoroutines // for the sessions that may be open
	b.over("alice", budgetPeak, siegeHeap>>20)
}

// siegeQuarter attacks for a while, and then ends what it has begun.
func siegeQuarter(t *testing.T, b *besieged, lasts time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var all sync.WaitGroup
	var calls, attacks atomic.Int64
	for _, revision := range []string{legacyRevision, modernRevision} {
		for i := range 2 {
			all.Go(func() { behave(ctx, t, b.address, fmt.Sprintf("good%d%s", i, revision), revision, &calls) })
		}
	}
	for i, attack := range attacksOfAllKinds {
		all.Go(func() {
			e := newEnemy(t, b.address, fmt.Sprint("mallory", i%3))
			e.ctx = ctx
			defer e.client.CloseIdleConnections()
			s := &siegeOf{t, b, e}
			for ctx.Err() == nil {
				attack(s)
				attacks.Add(1)
			}
			e.ctx = t.Context()
			if e.session != "" {
				e.end()
			}
		})
	}
	all.Wait()
	t.Logf("%d attacks, %d calls of others", attacks.Load(), calls.Load())
	if calls.Load() == 0 {
		t.Error("no well-behaved client was served")
	}
}

// behave is a client that only calls tools, with and without tasks, until ctx ends.
func behave(ctx context.Context, t *testing.T, url, token, revision string, calls *atomic.Int64) {
	own := &http.Transport{}
	defer own.CloseIdleConnections()
	conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{
		Revision: revision, HTTPClient: &http.Client{Transport: bearer{token, own}},
		Answer: mcptask.Answer(siege.Question, func(context.Context, mcptask.Question) (siege.Answer, error) {
			return siege.Answer{Count: 1, Color: "red", Word: token[:4]}, nil
		}),
	})
	if err != nil {
		t.Errorf("%s: %v", token, err)
		return
	}
	defer conn.Close()
	for ctx.Err() == nil {
		// Each call has its own time limit. A refused or lost call is a fault, a slow one is not.
		call, end := context.WithTimeout(t.Context(), patience)
		tool, arguments, want := "quick", map[string]any{"v": []int{1, 2}}, "done"
		if calls.Load()%2 == 0 {
			tool, arguments, want = "bound_ask", nil, token[:4]
		}
		result, err := mcptask.Run[string](call, conn, tool, arguments)
		end()
		if err != nil || result != want {
			t.Errorf("%s: %s answers %q, %v", token, tool, result, err)
			return
		}
		calls.Add(1)
	}
}

// bearer adds a token to every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// attacksOfAllKinds are the attacks that each attacker repeats.
var attacksOfAllKinds = []func(*siegeOf){
	func(s *siegeOf) { // poison
		tool := siege.Checked[rand.IntN(len(siege.Checked))]
		s.send(s.tool(tool, fmt.Sprintf(`{"v":%s}`, siege.List(siege.Poison[rand.IntN(len(siege.Poison))], 20_000)), rand.IntN(2) == 0))
	},
	func(s *siegeOf) { // malformed requests
		m := s.tool(siege.Checked[rand.IntN(len(siege.Checked))], `{"v":[424242]}`, rand.IntN(2) == 0)
		place, _ := siege.Place([]byte(m.body))
		m.body = string(siege.Twist([]byte(m.body), byte(rand.UintN(siege.Twists+1)), place, uint16(rand.UintN(1<<15))))
		s.send(m)
	},
	func(s *siegeOf) { // sessions that are left open, more than are allowed
		e := &enemy{ctx: s.ctx, url: s.enemy.url, token: s.token, client: s.client}
		e.open()
		if rand.IntN(2) > 0 {
			e.ctx = s.t.Context()
			e.end()
		}
	},
	func(s *siegeOf) { s.token = nobody; s.send(s.tool("quick", "{}", false)) },
	func(s *siegeOf) { // endless tasks
		s.send(s.tool([]string{"quick", "work", "bound_ask"}[rand.IntN(3)], fmt.Sprintf(`{"pad":%q}`, strings.Repeat("x", rand.IntN(100_000))), true))
	},
	func(s *siegeOf) { // endless keys
		s.send(s.modernMeta("tools/call", "quick", `"name":"quick","arguments":{},`, fmt.Sprintf(`"io.github.mcptaskgen/idempotency-key":"a key of its own %d",`, rand.Uint64()), true))
	},
	func(s *siegeOf) { // IDs of no task
		id := fmt.Sprintf("%032X", rand.Uint64())
		s.send(s.modern([]string{"tasks/get", "tasks/cancel", "tasks/update"}[rand.IntN(3)], id, fmt.Sprintf(`"taskId":%q,"inputResponses":{},`, id), true))
	},
	func(s *siegeOf) { // connections that read nothing, and requests that wait
		task := s.send(s.tool("work", "{}", true)).task()
		drop := s.hold(20, func(i int) message {
			if i%2 == 0 {
				return s.tool("big", `{"bytes":200000}`, false)
			}
			return s.modern("subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":[%q]},`, task), true)
		})
		s.send(s.modern("tasks/cancel", task, fmt.Sprintf(`"taskId":%q,`, task), true))
		drop()
	},
	func(s *siegeOf) { // sessions with streams, tasks that ask, and answers of all kinds
		if s.session == "" && s.enemy.open().status != http.StatusOK {
			return
		}
		drop := s.hold(5, func(int) message { return s.stream() })
		task := s.send(s.legacy("tools/call", `{"name":"bound_ask","arguments":{},"task":{}}`)).task()
		wait := s.hold(5, func(int) message { return s.legacy("tasks/result", fmt.Sprintf(`{"taskId":%q}`, task)) })
		m := s.legacy("", "{}")
		m.body = fmt.Sprintf(`{"jsonrpc":"2.0","id":"mcptask/%s/step","result":{"action":"accept","content":{"count":%s}}}`, task, siege.Poison[rand.IntN(len(siege.Poison))])
		s.send(m)
		s.send(s.legacy("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, task)))
		wait()
		drop()
	},
	func(s *siegeOf) { // bodies that are no messages
		s.send(message{body: strings.Repeat("[", rand.IntN(10_000)), header: s.header()})
		s.send(s.modern(strings.Repeat("m", rand.IntN(10_000)), "", "", false))
	},
	func(s *siegeOf) { // calls whose client leaves at once
		ctx, cancel := context.WithTimeout(s.ctx, time.Duration(rand.IntN(20))*time.Millisecond)
		defer cancel()
		res, err := s.start(ctx, s.tool("work", "{}", false))
		if err == nil {
			_ = res.Body.Close()
		} else if !errors.Is(err, context.DeadlineExceeded) && s.ctx.Err() == nil {
			s.t.Logf("a call ends with %v", err)
		}
	},
}
