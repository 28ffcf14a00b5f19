package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// rarely has the tool "wait", whose server asks for one poll an hour.
func rarely(release <-chan struct{}) mcptask.Tools {
	policy := mcptask.Policy{Task: mcptask.TaskOptional, Poll: time.Hour}
	return mcptask.Tools{Service: "Rarely", Impl: 1, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "wait", InputSchema: wiretest.OpenObject, Policy: policy},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				select {
				case <-release:
					return "released", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}),
	}}
}

func startWait(t testing.TB, conn mcptask.Conn) *mcptask.Call[string] {
	t.Helper()
	call, err := mcptask.Start[string](t.Context(), conn, "wait", struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// TestEndShowsOnAPipe: over stdio too, the client learns of a task's end, and of the server's, hours before the next
// poll.
func TestEndShowsOnAPipe(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		tasks, sdk := newServer(t, taskserver.Options{}, rarely(release))
		wire, kill := servePipes(t, wirecheck.Legacy, tasks, sdk)
		conn := dialOver(t, wire, gosdk.ClientOptions{Revision: wiretest.ModernRevision})
		first := startWait(t, conn)
		time.AfterFunc(300*time.Millisecond, func() { release <- struct{}{} })
		soon, cancel := wiretest.WithTimeout(t, wiretest.Patience)
		defer cancel()
		if text, err := first.Wait(soon); err != nil || text != "released" {
			t.Errorf("%q, %v", text, err)
		}
		second := startWait(t, conn)
		time.AfterFunc(300*time.Millisecond, kill)
		if _, err := second.Wait(soon); !errors.Is(err, mcptask.ErrDisconnected) {
			t.Errorf("the server is gone: %v", err)
		}
		if _, err := second.Wait(soon); !errors.Is(err, mcptask.ErrDisconnected) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestEndShowsEachTime: a server ends a subscription with its last task, which is no failure, so that the client learns of
// the ends of the next tasks as soon.
func TestEndShowsEachTime(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-62")
	bubble.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		tasks, sdk := newServer(t, taskserver.Options{}, rarely(release))
		wire, _ := servePipes(t, wirecheck.Legacy, tasks, sdk)
		conn := dialOver(t, wire, gosdk.ClientOptions{Revision: wiretest.ModernRevision})
		for i := range 12 {
			call := startWait(t, conn)
			time.AfterFunc(300*time.Millisecond, func() { release <- struct{}{} })
			began := time.Now()
			if text, err := call.Wait(t.Context()); err != nil || text != "released" {
				t.Fatalf("%q, %v", text, err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the end of task %d shows after %v", i, took)
			}
		}
	})
}

// TestNothingIsLeft: after Close, the client has no connection and no goroutine left, whatever was under way.
func TestNothingIsLeft(t *testing.T) {
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		t.Run(revision, func(t *testing.T) {
			release := make(chan struct{})
			var mu sync.Mutex
			open, opened := map[net.Conn]bool{}, 0
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{rarely(release)}, Start: func(s *httptest.Server) {
				s.Config.ConnState = func(c net.Conn, state http.ConnState) {
					mu.Lock()
					defer mu.Unlock()
					switch state {
					case http.StateNew:
						open[c] = true
						opened++
					case http.StateClosed, http.StateHijacked:
						delete(open, c)
					}
				}
				s.Start()
			}})
			options := gosdk.ClientOptions{Revision: revision}
			check := wiretest.Goroutines(t)
			for round := range 3 {
				conn, err := gosdk.Connect(t.Context(), url, options)
				if err != nil {
					t.Fatal(err)
				}
				var calls []*mcptask.Call[string]
				for range 40 {
					calls = append(calls, startWait(t, conn))
				}
				var waiting sync.WaitGroup
				for i, call := range calls {
					ctx, cancel := context.WithCancel(t.Context())
					if i%3 == 0 { // some callers give up while everything is under way
						time.AfterFunc(time.Duration(i)*5*time.Millisecond, cancel)
					}
					waiting.Go(func() {
						defer cancel()
						if _, err := call.Wait(ctx); err == nil {
							t.Error("it ended")
						}
					})
				}
				waiting.Go(func() {
					settled := 0
					for call, err := range mcptask.Settled(t.Context(), calls...) {
						if call == nil || !errors.Is(err, mcptask.ErrDisconnected) && !errors.Is(err, mcptask.ErrCancelled) {
							t.Errorf("settled: %v", err)
						}
						settled++
					}
					if settled != len(calls) {
						t.Errorf("%d of %d settled", settled, len(calls))
					}
				})
				time.Sleep(time.Duration(100+300*round) * time.Millisecond)
				for _, call := range calls[:10] {
					cancel(t, call)
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
				waiting.Wait()
				for _, call := range calls[10:] { // the tasks are still there
					tokenOf(t, call)
				}
				cancelAll(t, url, options, calls[10:])
			}
			check()
			left := func() int {
				mu.Lock()
				defer mu.Unlock()
				return len(open)
			}
			for end := time.Now().Add(wiretest.Patience); left() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d connections are open", left())
				}
			}
			t.Logf("%d connections were opened", opened)
		})
	}
}

func tokenOf(t testing.TB, call *mcptask.Call[string]) mcptask.Token {
	t.Helper()
	token, ok := call.Token()
	if !ok {
		t.Error("no token")
	}
	return token
}

// cancelAll resumes calls on another connection, as another process would, and cancels them.
func cancelAll(t testing.TB, url string, options gosdk.ClientOptions, calls []*mcptask.Call[string]) {
	t.Helper()
	conn := dial(t, url, options)
	defer conn.Close() // the caller counts goroutines before the test ends
	var resumed []*mcptask.Call[string]
	for _, call := range calls {
		again, err := mcptask.Resume[string](conn, "wait", tokenOf(t, call))
		if err != nil {
			t.Fatal(err)
		}
		resumed = append(resumed, again)
	}
	var cancelling sync.WaitGroup
	for _, call := range resumed {
		cancelling.Go(func() {
			cancel(t, call)
		})
	}
	settled := 0
	for call, err := range mcptask.Settled(t.Context(), resumed...) {
		if call == nil || !errors.Is(err, mcptask.ErrCancelled) {
			t.Errorf("resumed: %v", err)
		}
		settled++
	}
	if settled != len(resumed) {
		t.Errorf("%d of %d resumed calls settled", settled, len(resumed))
	}
	cancelling.Wait()
}

// TestCancelRaces: a cancellation that races with the end has one of two outcomes, the same for all waiting callers.
func TestCancelRaces(t *testing.T) {
	t.Parallel()
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		release := make(chan struct{})
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{rarely(release)}})
		conn := dial(t, url, gosdk.ClientOptions{Revision: revision})
		ctx, stop := wiretest.WithTimeout(t, 2*wiretest.Patience)
		defer stop()
		ends := map[string]int{}
		for range 40 {
			call := startWait(t, conn)
			outcomes := make(chan string, 3)
			for range 3 {
				go func() {
					text, err := call.Wait(ctx)
					if err != nil && !errors.Is(err, mcptask.ErrCancelled) {
						t.Error(err)
					}
					outcomes <- fmt.Sprint(text, " ", err)
				}()
			}
			go func() {
				select {
				case release <- struct{}{}:
				case <-time.After(20 * time.Millisecond):
				}
			}()
			cancel(t, call)
			one, two, three := <-outcomes, <-outcomes, <-outcomes
			if one != two || two != three {
				t.Errorf("%q, %q, %q", one, two, three)
			}
			ends[one]++
		}
		t.Log(ends)
	})
}
