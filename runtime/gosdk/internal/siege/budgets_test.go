//go:build long

package siege_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk/internal/siege"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// Limits for what one attack may cost the server. SECURITY.md publishes them.
const (
	// budgetRatio limits the processor time of an attack, as a multiple of the time for as many harmless bytes in as
	// many requests.
	budgetRatio = 12
	// budgetPeak limits the resident memory during an attack, in MiB. budgetSmall does so if its bodies have 100 kB.
	budgetPeak  = 512
	budgetSmall = 128
	// budgetResults is budgetPeak for a dozen or two results of megabytes at once. budgetCopies limits the copies of a
	// result that the client does not read.
	budgetResults = 1536
	budgetCopies  = 6
	// budgetKept limits how much the heap may have grown after an attack, in MiB, beyond what quotas allow.
	budgetKept = 24
	// budgetLeft limits the goroutines and descriptors that may be left after an attack.
	budgetLeft = 8
)

// raced is the factor by which the race detector increases a process's memory, or 1 without it.
var raced = int64(wiretest.ScaleForRace(1, 10))

// grain is the least time that a floor counts as. Shorter times cannot be measured well.
const grain = 250 * time.Millisecond

// scale returns the size of an attack: n, or ten times n with MCPTASK_SIEGE=full. Under the race detector, which
// makes everything many times slower, it returns a fifth of that.
func scale(n int) int {
	if os.Getenv("MCPTASK_SIEGE") == "full" {
		n *= 10
	}
	if raced > 1 {
		n /= 5
	}
	return n
}

// besieged is a server under attack, with its state before the attack.
type besieged struct {
	*process
	address string
	before  state
	files   int // descriptors
	used    time.Duration
}

func besiege(t *testing.T, c config) *besieged {
	t.Helper()
	b := &besieged{process: begin(t, asServer, c)}
	b.address = b.line()
	warm := newEnemy(t, b.address, c.token("warm"))
	warm.send(warm.tool("quick", "{}", false))
	warm.client.CloseIdleConnections()
	b.rest()
	return b
}

// token returns the token of a caller if the server asks for one.
func (c config) token(name string) string {
	if c.Bearer {
		return name
	}
	return ""
}

// rest records the server's state as the one before the attack.
func (b *besieged) rest() {
	b.t.Helper()
	for b.before = b.look(); ; time.Sleep(20 * time.Millisecond) { // until the last connections are gone
		s := b.look()
		if s.Goroutines >= b.before.Goroutines {
			break
		}
		b.before = s
	}
	b.files, b.used = b.descriptors(), b.cpu()
	b.quiet()
}

// idle waits until the server has nothing left to do. It gives up after a while, because the machine may be busy.
func (b *besieged) idle() {
	b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		used := b.cpu()
		time.Sleep(200 * time.Millisecond)
		if b.cpu() == used {
			return
		}
	}
}

// over ends the attack. It checks that the server still serves, has not panicked, and has neither taken nor kept more
// than it may.
func (b *besieged) over(token string, peak, kept int64) {
	t := b.t
	t.Helper()
	last := newEnemy(t, b.address, token)
	if r := last.send(last.tool("quick", `{"v":[1]}`, false)); r.status != 200 || !strings.Contains(string(r.body), "done") {
		t.Errorf("it does not serve any more: %d %.300s", r.status, r.body)
	}
	last.client.CloseIdleConnections()
	s := b.settle("something is left", func(s state) bool {
		return s.Goroutines <= b.before.Goroutines+budgetLeft && b.descriptors() <= b.files+budgetLeft && s.Heap <= b.before.Heap+kept<<20
	})
	if has := b.resident("VmHWM"); has > raced*peak<<20 {
		t.Errorf("it had %d MiB of memory, and may have %d", has>>20, raced*peak)
	}
	for _, text := range s.Panics {
		t.Errorf("it panicked: %s", text)
	}
	t.Logf("heap %d -> %d KiB, peak %d MiB, %v of processor time, %d bytes logged, %+v",
		b.before.Heap>>10, s.Heap>>10, b.resident("VmHWM")>>20, b.cpu()-b.used, s.Logged-b.before.Logged, s.Counts)
}

// TestProcessorTime compares the cost of each kind of poisoned input with that of as many harmless bytes, sent to the
// same process.
func TestProcessorTime(t *testing.T) {
	size, peak := scale(100_000), int64(budgetSmall) // bytes of each request
	if size > 200_000 {
		peak = budgetPeak
	}
	in := func(tool, value string) func(*enemy) message {
		return func(e *enemy) message { return e.tool(tool, `{"v":`+value+`}`, false) }
	}
	integers := in("integers", siege.List("1234567", size))
	distinct := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%s"`, strings.NewReplacer("0", "a", "1", "b").Replace(fmt.Sprintf("%b", i)))
		}
		return "[" + b.String()[1:] + "]"
	}
	for _, attack := range []struct {
		name           string
		requests       int
		atOnce         bool
		harmless, sent func(*enemy) message
	}{
		{"poison integers", 2, false, integers, in("integers", siege.List("1e-999999", size))},
		{"poison exponents", 2, false, integers, in("integers", siege.List("1e999999", size))},
		{"exponents out of range", 2, false, integers, in("integers", siege.List("1e-2147483648", size))},
		{"exponents out of range against bounds", 2, false, in("bounded", siege.List("12.25", size)), in("bounded", siege.List("1e-2147483648", size))},
		{"one long integer", 2, false, integers, in("integers", "["+strings.Repeat("9", size)+"]")},
		{"one long fraction", 2, false, in("bounded", siege.List("12.25", size)), in("bounded", "[0."+strings.Repeat("0", size)+"1]")},
		{"poison against bounds", 2, false, in("bounded", siege.List("12.25", size)), in("bounded", siege.List("1e-999999", size))},
		{"wrong elements", 16, true, integers, in("integers", siege.List(`"x"`, size))},
		{"wrong alternatives", 2, false, in("choices", siege.List(`"red"`, size)), in("choices", siege.List(`{"y":1}`, size))},
		{"distinct words", 2, false, integers, in("words", distinct(size/20))},
		{"equal words", 2, false, integers, in("words", siege.List(`"a"`, size))},
		{"long words", 2, false, integers, in("words", siege.List(strconv.Quote(strings.Repeat("ab", 500)), size))},
		{"deep arrays", 4, false, integers, in("integers", siege.Nest(size/2))},
		{"deep elements", 4, false, integers, in("integers", siege.List(siege.Nest(4000), size))},
		{"deep objects", 4, false, integers, in("tree", siege.NestObject(size/6))},
		{"a deep tree", 4, false, integers, in("tree", siege.NestObject(4000))},
		{"many members", 2, false, integers, in("tree", siege.Object(size/12, false))},
		{"equal members", 2, false, integers, in("tree", siege.Object(size/6, true))},
		{"deep _meta", 4, false, integers, func(e *enemy) message {
			return e.modernMeta("tools/call", "quick", `"name":"quick","arguments":{},`, `"x":`+siege.Nest(size/2)+",", false)
		}},
		{"many in _meta", 4, false, integers, func(e *enemy) message {
			return e.modernMeta("tools/call", "quick", `"name":"quick","arguments":{},`, `"x":`+siege.Object(size/12, false)+",", false)
		}},
		{"a long method", 4, false, integers, func(e *enemy) message {
			return e.modern(strings.Repeat("m", size), "", "", false)
		}},
		{"many task IDs", 4, false, integers, func(e *enemy) message {
			return e.modern("subscriptions/listen", "", `"notifications":{"taskIds":`+siege.List(`"x"`, size)+`},`, true)
		}},
		{"deep answers", 4, false, integers, func(e *enemy) message {
			return e.modern("tasks/update", "x", `"taskId":"x","inputResponses":{"step":`+siege.NestObject(size/6)+`},`, true)
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			b := besiege(t, config{})
			e := newEnemy(t, b.address, "")
			run := func(next func(*enemy) message) (used time.Duration) {
				began, m := b.cpu(), next(e)
				if attack.atOnce {
					together(attack.requests, func(int) { e.send(m) })
				} else {
					for range attack.requests {
						e.send(m)
					}
				}
				return b.cpu() - began
			}
			floor := max(run(attack.harmless), grain)
			e.client.CloseIdleConnections()
			b.rest()
			done := b.guard(budgetRatio*floor, raced*2*peak<<20)
			used := run(attack.sent)
			done()
			t.Logf("%v of processor time, %v for harmless bytes", used, floor)
			if used > budgetRatio*floor {
				t.Errorf("it takes %v of processor time, as many harmless bytes %v", used, floor)
			}
			e.client.CloseIdleConnections()
			b.over("", peak, budgetKept)
		})
	}
}

// siegeOf is an attack that is measured by what the server keeps.
type siegeOf struct {
	t *testing.T
	*besieged
	*enemy
}

// waiters limits the goroutines for 1,000 connections, on which 200 requests may wait: one or two for each connection,
// and some for each request.
const waiters = 2*1000 + 4*200

// bytesQuota bounds the bytes of an account's tasks to 8 MiB.
const bytesQuota = `{"Bytes":8388608}`

// TestKept checks what floods leave in memory, goroutines, descriptors and the log.
func TestKept(t *testing.T) {
	for _, attack := range []struct {
		name       string
		config     config
		peak, kept int64 // MiB
		run        func(s *siegeOf)
	}{
		{"anonymous sessions", config{Limits: `{"Sessions":200}`}, budgetPeak, budgetKept, func(s *siegeOf) {
			together(scale(1500), func(int) {
				e := newEnemy(s.t, s.address, "")
				e.client = s.client
				e.open()
			})
			if n := s.look().Counts.Sessions; n > 200 {
				s.t.Errorf("%d sessions", n)
			}
			s.before.Goroutines += 200 * 4 // for the sessions that stay
		}},
		{"made-up task IDs", config{}, budgetPeak, budgetKept, func(s *siegeOf) {
			together(scale(5000), func(int) {
				id := fmt.Sprintf("%032X", rand.Uint64())
				s.send(s.modern("tasks/get", id, fmt.Sprintf(`"taskId":%q,`, id), true))
			})
		}},
		{"long made-up task IDs", config{}, budgetPeak, budgetKept, func(s *siegeOf) {
			together(scale(50), func(i int) {
				id := fmt.Sprintf("%032X%s", i, strings.Repeat("x", 1<<19))
				s.send(s.modern("tasks/get", "x", fmt.Sprintf(`"taskId":%q,`, id), true)) // refused, because the header differs
				s.send(s.legacy("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)))
			})
		}},
		{"unknown callers", config{Bearer: true}, budgetPeak, budgetKept, func(s *siegeOf) {
			s.token = nobody
			began := time.Now()
			together(scale(2000), func(int) { s.send(s.tool("quick", "{}", false)) })
			s.wantLogged(began, 1<<10) // one record for all callers
		}},
		{"refused inputs", config{}, budgetPeak, budgetKept, func(s *siegeOf) { // the log stays short, whatever is refused
			began := time.Now()
			together(scale(200), func(i int) {
				s.send(message{body: strings.Repeat("{", 1000), header: s.header()})
				s.send(s.tool("no such "+strings.Repeat("x", 1000), "{}", false))
				s.send(s.tool("integers", `{"v":`+siege.List(`"x"`, 2000)+`}`, false))
				s.send(s.modern(strings.Repeat("m", 1000), "", "", false))
				s.send(s.legacy(strings.Repeat("m", 1000), "{}"))
				s.send(message{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":7}`, header: s.header()})
			})
			s.wantLogged(began, 1<<14)
		}},
		{"idempotency keys", config{Bearer: true, Limits: bytesQuota}, budgetPeak, 8 + budgetKept, func(s *siegeOf) {
			together(scale(200), func(i int) { // each is new, and some are too long
				key := fmt.Sprintf("%d %s", i, strings.Repeat("k", []int{1 << 18, 200, 200, 200, 200}[i%5]))
				s.send(s.modernMeta("tools/call", "quick", `"name":"quick","arguments":{},`, fmt.Sprintf(`"io.github.mcptaskgen/idempotency-key":%q,`, key), true))
			})
		}},
		{"large arguments", config{Bearer: true, Limits: bytesQuota}, budgetPeak, 8 + budgetKept, func(s *siegeOf) {
			text := strings.Repeat("x", 1<<20-1000)
			together(4+scale(20), func(int) { s.send(s.tool("quick", `{"pad":"`+text+`"}`, true)) })
		}},
		{"large results", config{Bearer: true, Limits: bytesQuota}, budgetResults, 8 + budgetKept, func(s *siegeOf) {
			together(16, func(int) { s.send(s.tool("big", `{"bytes":4000000}`, true)) })
		}},
		{"requests that wait", config{Bearer: true, Limits: `{"Waiting":200}`}, budgetPeak, budgetKept, func(s *siegeOf) {
			created := s.send(s.tool("work", "{}", true))
			if created.task() == "" {
				s.t.Fatalf("no task: %s", created.body)
			}
			waiting := s.hold(1000, func(i int) message {
				return s.modern("subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":[%q]},`, created.task()), true)
			})
			s.idle()
			if n := s.look().Goroutines - s.before.Goroutines; n > waiters {
				s.t.Errorf("%d goroutines for the 200 requests that may wait, on 1,000 connections", n)
			}
			waiting()
			s.send(s.modern("tasks/cancel", created.task(), fmt.Sprintf(`"taskId":%q,`, created.task()), true))
		}},
		{"results that are waited for", config{Bearer: true, Limits: `{"Waiting":200}`}, budgetPeak, budgetKept, func(s *siegeOf) {
			s.open()
			task := s.send(s.legacy("tools/call", `{"name":"work","arguments":{},"task":{}}`)).task()
			waiting := s.hold(1000, func(int) message { return s.legacy("tasks/result", fmt.Sprintf(`{"taskId":%q}`, task)) })
			s.idle()
			if st := s.look(); task == "" || st.Goroutines-s.before.Goroutines > waiters {
				s.t.Errorf("%q: %+v", task, st)
			}
			waiting()
			s.send(s.legacy("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, task)))
			s.end()
		}},
		{"results that the client does not read", config{Bearer: true}, budgetResults, budgetKept, func(s *siegeOf) {
			const size = 3_000_000
			results := 1 + scale(20)
			done := s.hold(results, func(int) message { return s.tool("big", fmt.Sprintf(`{"bytes":%d}`, size), false) })
			s.idle()
			if held := s.look().Heap - s.before.Heap; held > int64(budgetCopies*results*size) {
				s.t.Errorf("%d MiB are held for %d results of %d bytes", held>>20, results, size)
			}
			done()
		}},
		{"streams that the client does not read", config{Bearer: true}, budgetPeak, budgetKept, func(s *siegeOf) {
			s.open()
			done := s.hold(100, func(int) message { return s.stream() })
			together(scale(100), func(int) { s.send(s.legacy("tools/call", `{"name":"quick","arguments":{},"task":{}}`)) })
			done()
			s.end()
		}},
		{"a server of the SDK for each request", config{PerRequest: true}, budgetPeak, budgetKept, func(s *siegeOf) {
			together(scale(300), func(int) { s.send(s.tool("quick", "{}", false)) })
		}},
		{"calls whose client leaves at once", config{Bearer: true}, budgetPeak, budgetKept, func(s *siegeOf) {
			for range scale(3) {
				s.hold(100, func(int) message { return s.tool("work", "{}", false) })()
			}
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			b := besiege(t, attack.config)
			s := &siegeOf{t, b, newEnemy(t, b.address, attack.config.token("mallory"))}
			done := b.guard(patience, raced*2*attack.peak<<20)
			attack.run(s)
			done()
			s.client.CloseIdleConnections()
			b.over(attack.config.token("alice"), attack.peak, attack.kept)
		})
	}
}

// wantLogged checks that the log has at most so many bytes for each second since the attack began.
func (s *siegeOf) wantLogged(began time.Time, each int64) {
	s.t.Helper()
	took := time.Since(began)
	if logged := s.look().Logged - s.before.Logged; logged > (int64(took/time.Second)+2)*each {
		s.t.Errorf("%d bytes are logged in %v", logged, took)
	}
}

// hold sends so many requests, each on its own connection. It reads no answer before drop closes the connections.
func (s *siegeOf) hold(n int, next func(int) message) (drop func()) {
	s.t.Helper()
	var drops []func()
	for i := range n {
		conn, err := s.raw(s.t.Context(), next(i))
		if err != nil {
			s.t.Error(err)
			break
		}
		drops = append(drops, func() { _ = conn.Close() })
	}
	return func() {
		for _, drop := range drops {
			drop()
		}
	}
}

// TestSlowHeads: a connection that never ends its request's head is closed after http.Server's ReadHeaderTimeout.
func TestSlowHeads(t *testing.T) {
	t.Parallel()
	b := besiege(t, config{HeaderTimeout: 200 * time.Millisecond})
	e := newEnemy(t, b.address, "")
	var slow []net.Conn
	for range 100 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	for _, conn := range slow {
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server waits for ever")
		}
	}
	e.client.CloseIdleConnections()
	b.over("", budgetPeak, budgetKept)
}
