package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

func gaps(calls []call) []time.Duration {
	var list []time.Duration
	for i := range calls[1:] {
		list = append(list, calls[i+1].at.Sub(calls[i].at))
	}
	return list
}

// TestPollsAtTheInterval: the client never polls sooner than the server's last interval, does not poll in step with
// other clients, and does not poll after the end.
func TestPollsAtTheInterval(t *testing.T) {
	rules.Covers(t, "C-30", "C-31", "B-31", "B-32", "E-17", "E-18", "E-25", "E-27")
	everyRevision(t, func(t *testing.T, revision string) {
		intervals := []int{3000, 3000, 10000, 200, 200, 45000}
		name := map[bool]string{false: "pollInterval", true: "pollIntervalMs"}[revision == wiretest.ModernRevision]
		s := polled(t, revision, func(s *scripted, n int) reply {
			if n > len(intervals) {
				return s.done()
			}
			return s.state("t", "working", fmt.Sprintf(`%q:%d`, name, intervals[n-1]))
		})
		call := start(t, s.connect(gosdk.ClientOptions{}))
		wantNumber(t, call, 1)
		exact := 0
		for i, gap := range gaps(s.of("tasks/get")) {
			interval := time.Duration(intervals[i]) * time.Millisecond
			if gap < interval || gap > interval+interval/10+1 {
				t.Errorf("poll %d came after %v, the server said %v", i+2, gap, interval)
			}
			if gap == interval {
				exact++
			}
		}
		if exact == len(intervals) {
			t.Error("no gap differs from its interval: many clients would poll in step")
		}
		time.Sleep(time.Hour)
		if n := len(s.of("tasks/get")); n != len(intervals)+1 {
			t.Errorf("%d polls", n)
		}
	})
}

// TestLimitedPolls: if a server limits polls, the client polls more slowly for as long as the limit holds, and obeys
// Retry-After.
func TestLimitedPolls(t *testing.T) {
	for name, tc := range map[string]struct {
		reply reply
		least time.Duration // of every gap after the first refusal
	}{
		"a limit":         {refusal(wiretest.InternalError, `{"limit":"polls"}`), 2 * time.Second},
		"with 429":        {reply{status: 429, err: refusal(wiretest.InternalError, `{"limit":"polls"}`).err}, 2 * time.Second},
		"and Retry-After": {reply{status: 429, err: refusal(wiretest.InternalError, `{"limit":"polls"}`).err, header: map[string]string{"Retry-After": "90"}}, 90 * time.Second},
	} {
		t.Run(name, inEveryRevision(func(t *testing.T, revision string) {
			s := polled(t, revision, func(s *scripted, n int) reply {
				if n <= 20 {
					return tc.reply
				}
				return s.done()
			})
			call := start(t, s.connect(gosdk.ClientOptions{}))
			wantNumber(t, call, 1)
			last := time.Duration(0)
			for i, gap := range gaps(s.of("tasks/get")) {
				if gap < tc.least || i < 4 && gap < last && tc.least < time.Minute {
					t.Errorf("polled again after %v, before after %v", gap, last)
				}
				last = gap
			}
			if len(s.of("initialize"))+len(s.of("server/discover")) > 2 {
				t.Error("it opened a new session")
			}
		}))
	}
}

// TestUnavailable: an HTTP error without a JSON-RPC message is an error of the transport. The client tries several
// times more, and keeps its session.
func TestUnavailable(t *testing.T) {
	for _, status := range []int{429, 500, 502, 503, 504, 599} {
		t.Run(fmt.Sprint(status), inEveryRevision(func(t *testing.T, revision string) {
			s := polled(t, revision, func(s *scripted, n int) reply {
				if n%5 != 0 {
					return reply{status: status, text: "not now"}
				}
				if n < 15 {
					return s.state("t", "working")
				}
				return s.done()
			})
			call := start(t, s.connect(gosdk.ClientOptions{}))
			wantNumber(t, call, 1)
			if n := len(s.of("tasks/get")); n != 15 || len(s.of("initialize"))+len(s.of("server/discover")) > 2 {
				t.Errorf("%d polls, %d sessions", n, len(s.of("initialize")))
			}
		}))
	}
	t.Run("for ever", inBubble(func(t *testing.T) {
		s := polled(t, wiretest.ModernRevision, func(*scripted, int) reply {
			return reply{status: 503, text: "down", header: map[string]string{"Retry-After": "60"}}
		})
		call := start(t, s.connect(gosdk.ClientOptions{}))
		began := time.Now()
		_, err := call.Wait(t.Context())
		if err == nil || !strings.Contains(err.Error(), "503") || errors.Is(err, mcptask.ErrExpired) || time.Since(began) < 6*time.Minute || time.Since(began) > 8*time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	}))
}

// TestBackstop: a task ends when its ttl has passed by the client's own clock, whatever the server's clock and answers
// say. A server may prolong the ttl.
func TestBackstop(t *testing.T) {
	rules.Covers(t, "E-36", "E-17", "E-79")
	const minute = `"ttlMs":60000`
	for _, tc := range []struct {
		name  string
		first []string // more members of the task as created
		poll  func(s *scripted, n int) reply
		least time.Duration
		most  time.Duration
		want  error
	}{
		{"it works for ever", nil, func(s *scripted, _ int) reply { return s.state("t", "working", minute) }, time.Minute, 3 * time.Minute, mcptask.ErrExpired},
		{"by a clock that is a day late", []string{`"createdAt":"1999-12-30T00:00:00Z"`, minute}, func(s *scripted, _ int) reply {
			return s.state("t", "working", minute, `"createdAt":"1999-12-30T00:00:00Z"`)
		}, time.Minute, 3 * time.Minute, mcptask.ErrExpired},
		{"it limits polls for ever", nil, func(s *scripted, n int) reply {
			if n == 1 {
				return s.state("t", "working", minute)
			}
			return refusal(wiretest.InternalError, `{"limit":"polls"}`)
		}, time.Minute, 3 * time.Minute, mcptask.ErrExpired},
		{"it prolongs", nil, func(s *scripted, n int) reply {
			if n > 500 {
				return s.done()
			}
			return s.state("t", "working", fmt.Sprintf(`"ttlMs":%d`, 60000+n*1200))
		}, 8 * time.Minute, 11 * time.Minute, nil},
		{"it has no end", nil, func(s *scripted, n int) reply {
			if n > 500 {
				return s.done()
			}
			return s.state("t", "working", `"ttlMs":null`)
		}, 8 * time.Minute, 11 * time.Minute, nil},
		{"it was purged", nil, func(s *scripted, n int) reply {
			if n > 70 {
				return refusal(wiretest.InvalidParams, "")
			}
			return s.state("t", "working", minute, `"createdAt":"2000-01-01T00:00:00Z"`)
		}, time.Minute, 2 * time.Minute, mcptask.ErrExpired},
	} {
		t.Run(tc.name, inBubble(func(t *testing.T) {
			s := polled(t, wiretest.ModernRevision, tc.poll)
			s.on("tools/call", func(call) reply { return s.created("t", tc.first...) })
			call := start(t, s.connect(gosdk.ClientOptions{}))
			began := time.Now()
			_, err := call.Wait(t.Context())
			if took := time.Since(began); !errors.Is(err, tc.want) || took < tc.least || took > tc.most {
				t.Errorf("%v after %v", err, took)
			}
		}))
	}
	t.Run("it no longer answers", inBubble(func(t *testing.T) {
		s := newScript(t, wiretest.ModernRevision, "tasks/get", func(s *scripted, c call) reply {
			if c.n > 3 {
				<-c.ctx.Done()
			}
			return s.state("t", "working", minute)
		})
		conn := s.connect(gosdk.ClientOptions{})
		call := start(t, conn)
		began := time.Now()
		if _, err := call.Wait(t.Context()); !errors.Is(err, mcptask.ErrExpired) || time.Since(began) > 3*time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		// A program that resumes the task gets the same.
		token, _ := call.Token()
		again := resume(t, conn, token)
		began = time.Now()
		if _, err := again.Wait(t.Context()); !errors.Is(err, mcptask.ErrExpired) || time.Since(began) > 2*time.Minute {
			t.Errorf("resumed: %v after %v", err, time.Since(began))
		}
	}))
}

// TestTakenUpAgain: another process can resume the task with nothing but its token.
func TestTakenUpAgain(t *testing.T) {
	rules.Covers(t, "E-28", "C-106", "B-101")
	everyRevision(t, func(t *testing.T, revision string) {
		s := polled(t, revision, func(s *scripted, n int) reply {
			if n < 5 {
				return s.state("t", "working")
			}
			return s.done()
		})
		call := start(t, s.connect(gosdk.ClientOptions{}))
		ctx := within(t, 2500*time.Millisecond)
		if _, err := call.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		token, ok := call.Token()
		if !ok {
			t.Fatal("no token")
		}
		again := resume(t, s.connect(gosdk.ClientOptions{}), token)
		wantNumber(t, again, 1)
		if n := len(s.of("tools/call")); n != 1 {
			t.Errorf("called %d times", n)
		}
	})
}
