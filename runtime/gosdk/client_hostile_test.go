package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// hourly are the members of a task whose server asks for one poll an hour.
const hourly = `"pollIntervalMs":3600000,"pollInterval":3600000`

// silent is a reply that never comes.
func silent(c call) reply {
	return reply{stream: func(func(string)) { <-c.ctx.Done() }}
}

// TestCloseEndsAll: Close ends whatever is under way, and every waiting caller learns of it at once, however rarely the
// server wants to be polled.
func TestCloseEndsAll(t *testing.T) {
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		for _, method := range []string{"tools/list", "tools/call", "tasks/get", "tasks/cancel", ""} {
			t.Run(revision+" "+method, overEachWay(func(t *testing.T, connect connector) {
				s := &scripted{t: t, revision: revision}
				hang := false
				s.answer = func(c call) reply {
					switch {
					case hang && c.method == method:
						return silent(c)
					case c.method == "tools/call":
						return s.created("t", hourly)
					case c.method == "tasks/get":
						return s.state("t", "working", hourly)
					}
					return reply{}
				}
				conn := connect(s, gosdk.ClientOptions{})
				first := start(t, conn)
				if method == "tasks/get" {
					var err error
					token, _ := first.Token()
					if first, err = mcptask.Resume[number](conn, "tool", token); err != nil {
						t.Fatal(err)
					}
				}
				hang = true
				errs := make(chan error, 3)
				for _, work := range []func(context.Context) error{
					func(ctx context.Context) error { _, err := first.Wait(ctx); return err },
					func(ctx context.Context) error {
						for _, err := range mcptask.Settled(ctx, first) { // there is one
							return err
						}
						return errors.New("not settled")
					},
					func(ctx context.Context) (err error) {
						switch method {
						case "tools/list":
							_, err = conn.ListTools(ctx)
						case "tools/call":
							_, err = mcptask.Start[number](ctx, conn, "tool", number{})
						case "tasks/cancel":
							err = first.Cancel(ctx)
						default:
							_, err = first.Wait(ctx)
						}
						return err
					},
				} {
					go func() { errs <- work(context.Background()) }()
				}
				time.Sleep(10 * time.Second)
				began := time.Now()
				if err := conn.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				for range 3 {
					if err := <-errs; !errors.Is(err, mcptask.ErrDisconnected) {
						t.Errorf("a call ended with %v", err)
					}
				}
				if _, err := first.Wait(context.Background()); !errors.Is(err, mcptask.ErrDisconnected) {
					t.Errorf("afterwards: %v", err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
			}))
		}
	}
}

// stuckWriter is the input of a server that stops reading it.
type stuckWriter struct {
	io.WriteCloser
	stuck  atomic.Bool
	closed chan struct{}
}

// Write implements io.Writer.
func (w *stuckWriter) Write(line []byte) (int, error) {
	if w.stuck.Load() {
		<-w.closed
	}
	return w.WriteCloser.Write(line)
}

// Close implements io.Closer.
func (w *stuckWriter) Close() error {
	close(w.closed)
	return w.WriteCloser.Close()
}

// TestServerStopsReading checks that calls end with their contexts although a server does not read its input.
func TestServerStopsReading(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tasks, sdk := newServer(t, taskserver.Options{}, pipeline.CITools(wiretest.CI{}))
		pipes, _ := servePipes(t, wirecheck.Legacy, tasks, sdk)
		in := &stuckWriter{WriteCloser: pipes.Writer, closed: make(chan struct{})}
		pipes.Writer = in
		conn := dialOver(t, pipes, gosdk.ClientOptions{})
		in.stuck.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var calls sync.WaitGroup
		for range 2 { // the second waits for the first
			calls.Go(func() {
				if _, err := conn.ListTools(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	})
}

// TestReconnectingHangs: if a server does not answer a new session, callers wait no longer than their contexts allow,
// and Close does not wait.
func TestReconnectingHangs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &scripted{t: t, revision: wiretest.LegacyRevision}
		lost := false
		s.answer = func(c call) reply {
			switch {
			case c.method == "initialize" && !lost:
				r, _ := s.open(c)
				r.header = map[string]string{"Mcp-Session-Id": "one"}
				return r
			case c.method == "initialize" || c.method == "server/discover" && lost:
				return silent(c)
			case lost:
				return reply{status: http.StatusNotFound, text: "no such session"}
			}
			return reply{}
		}
		conn := s.connect(gosdk.ClientOptions{})
		lost = true
		for _, patience := range []time.Duration{time.Hour, time.Minute, time.Second} {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				began := time.Now()
				if _, err := conn.ListTools(ctx); err == nil {
					t.Error("a list")
				}
				if took := time.Since(began); took > min(patience, 2*time.Minute) {
					t.Errorf("a caller with a timeout of %v waited %v", patience, took)
				}
			}()
			time.Sleep(time.Millisecond) // the caller with the longest timeout opens the session
		}
		time.Sleep(2*time.Minute - time.Second)
		if conn.Revision() != wiretest.LegacyRevision && conn.Revision() != "" {
			t.Errorf("revision %q", conn.Revision())
		}
		began := time.Now()
		if err := conn.Close(); err != nil || time.Since(began) > time.Second {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
		synctest.Wait()
	})
}

// TestAnswersOfOtherTasks: a client ignores the state of another task in the answer to a poll.
func TestAnswersOfOtherTasks(t *testing.T) {
	everyRevision(t, func(t *testing.T, revision string) {
		s := polled(t, revision, func(s *scripted, n int) (r reply) {
			if n <= 2 {
				r = s.state("other", "completed", `"result":`+output(666))
			}
			return r
		})
		wantNumber(t, start(t, s.connect(gosdk.ClientOptions{})), 1)
	})
}

// TestToldNonsense: notifications of unknown tasks, of ended tasks and of invalid tasks change nothing.
func TestToldNonsense(t *testing.T) {
	rules.Covers(t, "C-29", "B-30")
	eachWay(t, func(t *testing.T, connect connector) {
		b := newBoard(t)
		conn := connect(&b.scripted, gosdk.ClientOptions{})
		one, two := start(t, conn), start(t, conn)
		results := make(chan int, 2)
		for _, call := range []*mcptask.Call[number]{one, two} {
			go func() {
				out, err := call.Wait(context.Background())
				if err != nil {
					t.Error(err)
				}
				results <- out.N
			}()
		}
		time.Sleep(time.Second)
		b.mu.Lock()
		var tell []func(string, string)
		for _, l := range b.heard {
			tell = append(tell, l.send)
		}
		b.mu.Unlock()
		if len(tell) == 0 {
			t.Error("the client has no subscription")
		}
		for _, say := range tell {
			for i := range 2000 { // a flood of others' tasks
				say("notifications/tasks", b.task(fmt.Sprint("other", i), "completed", `"result":`+output(666)))
			}
			for _, junk := range []string{`"taskId":"t1"`, `"taskId":"t1","status":"on fire"`, `"taskId":7`, `"status":"completed"`} {
				say("notifications/tasks", junk)
			}
			say("notifications/subscriptions/acknowledged", `"notifications":{"taskIds":["t1","t2","other1"]}`)
			say("notifications/tasks", b.task("t1", "completed", `"result":`+output(1)))
			say("notifications/tasks", b.task("t1", "working"))
			say("notifications/tasks", b.task("t1", "failed", `"error":{"code":-32603,"message":"no"}`))
		}
		if n := <-results; n != 1 {
			t.Errorf("the first has %d", n)
		}
		time.Sleep(time.Minute)
		wantNumber(t, one, 1)
		b.set("t2", "completed", `"result":`+output(2))
		if n := <-results; n != 2 {
			t.Errorf("the second has %d", n)
		}
	})
}

// TestEndlessPages: the client gives up on a list that never ends.
func TestEndlessPages(t *testing.T) {
	everyRevision(t, func(t *testing.T, revision string) {
		s := newScript(t, revision, "tools/list", func(_ *scripted, c call) reply {
			return result(`{%s,"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"%[2]d"}`, complete, c.n)
		})
		if _, err := s.connect(gosdk.ClientOptions{}).ListTools(t.Context()); err == nil || !strings.Contains(err.Error(), "pages") {
			t.Errorf("%v", err)
		}
	})
}

// TestPanickingAnswerer: if an answerer panics, its answer fails and the program goes on.
func TestPanickingAnswerer(t *testing.T) {
	broken := pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) { panic("a bug") })
	everyRevision(t, func(t *testing.T, revision string) {
		s := &scripted{t: t, revision: revision}
		question := `"method":"elicitation/create","params":` + hostileQuestion(`{"type":"object","properties":{"approve":{"type":"boolean","default":false}},"required":["approve"]}`)
		asks := `{"ship":{` + question + `}}`
		s.answer = func(c call) reply {
			switch {
			case c.method == "tools/call" && strings.Contains(string(c.params), "before"):
				return result(`{"resultType":"input_required","inputRequests":%s}`, asks)
			case c.method == "tasks/get" && revision == wiretest.ModernRevision:
				return s.state("t", "input_required", `"inputRequests":`+asks)
			case c.method == "tasks/get":
				return s.state("t", "input_required")
			case c.method == "tasks/result": // asks on its own stream
				return reply{stream: func(send func(string)) {
					send(`{"jsonrpc":"2.0","id":"q",` + question + `}`)
					<-c.ctx.Done()
				}}
			}
			return reply{}
		}
		conn := s.connect(gosdk.ClientOptions{Answer: broken})
		ctx := within(t, time.Minute)
		_, err := start(t, conn).Wait(ctx)
		if revision != wiretest.ModernRevision { // it tells the server of the failure
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("%v", err)
		}
		if _, err := mcptask.Start[number](ctx, conn, "tool", map[string]bool{"before": true}); err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("before the task: %v", err)
		}
	})
}

// TestAbsurdNumbers: if a server asks for years between two polls, the task still ends at its ttl.
func TestAbsurdNumbers(t *testing.T) {
	const limit = 10 * time.Minute
	for name, tc := range map[string]struct {
		members string
		most    time.Duration // until the waiting ends
	}{
		"a century between polls": {`"ttl":60000,"ttlMs":60000,"pollInterval":3155760000000,"pollIntervalMs":3155760000000`, 3 * time.Minute},
		"more than there is":      {`"ttl":60000,"ttlMs":60000,"pollInterval":1e300,"pollIntervalMs":1e300`, 3 * time.Minute},
		"backwards":               {`"ttl":-1e300,"ttlMs":-1e300,"pollInterval":-5,"pollIntervalMs":-5`, limit},
		"no ttl":                  {`"ttl":0,"ttlMs":0,"pollInterval":0,"pollIntervalMs":0`, 2 * time.Minute},
		"no numbers":              {`"ttl":[],"ttlMs":{},"pollInterval":"soon","pollIntervalMs":true`, limit},
	} {
		t.Run(name, inEveryRevision(func(t *testing.T, revision string) {
			s := polled(t, revision, func(s *scripted, _ int) reply { return s.state("t", "working", tc.members) })
			s.on("tools/call", func(call) reply { return s.created("t", tc.members) })
			ctx := within(t, limit)
			began := time.Now()
			_, err := start(t, s.connect(gosdk.ClientOptions{})).Wait(ctx)
			if took := time.Since(began); err == nil || took > tc.most || tc.most < limit && !errors.Is(err, mcptask.ErrExpired) {
				t.Errorf("%v after %v", err, took)
			}
			if n := len(s.of("tasks/get")); n > 620 {
				t.Errorf("%d polls", n)
			}
		}))
	}
}

// TestCallIsNotRepeated: if the session is lost after the server has taken a call, the client repeats the call only if
// it has a key.
func TestCallIsNotRepeated(t *testing.T) {
	for name, options := range map[string][]mcptask.CallOption{"without a key": nil, "with one": {mcptask.IdempotencyKey("a key of sixteen bytes")}} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := &scripted{t: t, revision: wiretest.LegacyRevision}
			var lost atomic.Bool
			s.answer = func(c call) reply {
				switch {
				case c.method == "initialize":
					lost.Store(false)
					r, _ := s.open(c)
					r.header = map[string]string{"Mcp-Session-Id": fmt.Sprint("session", c.n)}
					return r
				case lost.Load() && c.header.Get("Mcp-Session-Id") == "session1":
					return reply{status: http.StatusNotFound, text: "no such session"}
				case c.method == "tools/call" && c.n == 1: // the server has taken it, and its answer is late
					return silent(c)
				case c.method == "tools/call":
					return result("%s", output(c.n))
				}
				return reply{}
			}
			conn := s.connect(gosdk.ClientOptions{})
			if _, err := conn.ListTools(t.Context()); err != nil {
				t.Fatal(err)
			}
			errs := make(chan error)
			go func() {
				_, err := mcptask.Run[number](context.Background(), conn, "tool", number{}, options...)
				errs <- err
			}()
			time.Sleep(time.Second)
			lost.Store(true)
			if _, err := conn.ListTools(t.Context()); err != nil {
				t.Error(err)
			}
			err := <-errs
			if n := len(s.of("tools/call")); options == nil && (err == nil || n != 1) || options != nil && (err != nil || n != 2) {
				t.Errorf("called %d times: %v", n, err)
			}
		}))
	}
}

// TestCancelShows: a waiting caller learns of the cancellation as soon as the server has taken it, however rarely the
// server wants to be polled.
func TestCancelShows(t *testing.T) {
	everyRevision(t, func(t *testing.T, revision string) {
		status := "working"
		s := polled(t, revision, func(s *scripted, _ int) reply { return s.state("t", status, hourly) })
		s.on("tools/call", func(call) reply { return s.created("t", hourly) })
		s.on("tasks/cancel", func(call) reply {
			status = "cancelled"
			return s.state("t", status, hourly)
		})
		call := start(t, s.connect(gosdk.ClientOptions{}))
		time.AfterFunc(time.Minute, func() {
			if err := call.Cancel(context.Background()); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		if _, err := call.Wait(t.Context()); !errors.Is(err, mcptask.ErrCancelled) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestToldWhileAPollHangs: a notification ends a poll that the server does not answer.
func TestToldWhileAPollHangs(t *testing.T) {
	eachWay(t, func(t *testing.T, connect connector) {
		b := newBoard(t)
		b.on("tasks/get", silent)
		call := start(t, connect(&b.scripted, gosdk.ClientOptions{}))
		time.AfterFunc(5*time.Minute, func() { b.set("t1", "completed", `"result":`+output(1)) })
		began := time.Now()
		if out, err := call.Wait(t.Context()); err != nil || out.N != 1 || time.Since(began) != 5*time.Minute {
			t.Errorf("%+v, %v after %v", out, err, time.Since(began))
		}
	})
}

// TestFloodOfQuestions: the client asks each of a server's endless questions once, and asks none after the wait has
// ended.
func TestFloodOfQuestions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var asked, ended atomic.Int32
		answer := pipeline.AnswerApproval(func(ctx context.Context, _ mcptask.Question) (pipeline.Approval, error) {
			asked.Add(1)
			<-ctx.Done()
			ended.Add(1)
			return pipeline.Approval{}, ctx.Err()
		})
		s := polled(t, wiretest.ModernRevision, func(s *scripted, n int) reply {
			questions := map[string]json.RawMessage{}
			for i := range 500 {
				questions[fmt.Sprint(n, " ", i)] = json.RawMessage(`{"method":"elicitation/create","params":` + hostileQuestion(`{"type":"object","properties":{}}`) + `}`)
			}
			data, _ := json.Marshal(questions)
			return s.state("t", "input_required", `"inputRequests":`+string(data))
		})
		ctx := within(t, 30*time.Second)
		if _, err := start(t, s.connect(gosdk.ClientOptions{Answer: answer})).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if asked.Load() == 0 || asked.Load() != ended.Load() {
			t.Errorf("%d asked, %d ended", asked.Load(), ended.Load())
		}
	})
}

// TestHastyServer: if a server asks to be polled without a pause, the client polls ten times a second at most, even if
// each answer brings news.
func TestHastyServer(t *testing.T) {
	for _, poll := range []string{"1", "0.001", "1e-300", `"1"`} {
		t.Run(poll, inEveryRevision(func(t *testing.T, revision string) {
			members := fmt.Sprintf(`"pollInterval":%s,"pollIntervalMs":%[1]s`, poll)
			s := polled(t, revision, func(s *scripted, n int) reply {
				return s.state("t", "working", members, fmt.Sprintf(`"statusMessage":"%d"`, n))
			})
			s.on("tools/call", func(call) reply { return s.created("t", members) })
			ctx := within(t, 10*time.Second)
			if _, err := start(t, s.connect(gosdk.ClientOptions{})).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if n := len(s.of("tasks/get")); n > 100 || n < 80 {
				t.Errorf("%d polls in ten seconds", n)
			}
		}))
	}
}

// TestSlowServer: if a server asks for an eternity between two polls, the client polls while the server still has the
// result.
func TestSlowServer(t *testing.T) {
	for name, members := range map[string]string{
		"kept for ever":   `"ttl":null,"ttlMs":null,"pollInterval":1e300,"pollIntervalMs":1e300`,
		"kept for a hour": `"ttl":3600000,"ttlMs":3600000,"pollInterval":1e300,"pollIntervalMs":1e300`,
	} {
		t.Run(name, inEveryRevision(func(t *testing.T, revision string) {
			s := polled(t, revision, func(s *scripted, _ int) reply { return s.state("t", "completed", members, `"result":`+output(1)) })
			s.on("tools/call", func(call) reply { return s.created("t", members) })
			began := time.Now()
			out, err := start(t, s.connect(gosdk.ClientOptions{})).Wait(t.Context())
			if took := time.Since(began); err != nil || out.N != 1 || took > 70*time.Minute {
				t.Errorf("%+v, %v after %v", out, err, took)
			}
		}))
	}
}
