package gosdk_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestStreamThatReturns: a server that ends its stream over and over, and says to
// come back at once or never, is come back to at a bearable pace.
func TestStreamThatReturns(t *testing.T) {
	for name, c := range map[string]struct {
		retry       string
		lasts       time.Duration
		least, most int // GETs
	}{
		"at once": {"1", time.Minute, 500, 610},
		"never":   {"999999999999", time.Hour, 11, 13},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := newScript(t, wiretest.LegacyRevision, "HTTP GET", func(_ *scripted, get call) reply {
				return reply{header: map[string]string{"Content-Type": "text/event-stream"},
					body: strings.NewReader(fmt.Sprintf("id: %d\nretry: %s\ndata:\n\n", get.n, c.retry))}
			})
			s.connect(gosdk.ClientOptions{})
			time.Sleep(c.lasts)
			if n := len(s.of("HTTP GET")); n < c.least || n > c.most {
				t.Errorf("%d streams in %v", n, c.lasts)
			}
		}))
	}
}

// TestLongIdentifiers: what a server names an event or a task with comes back in the
// header of requests, so that it has a bound.
func TestLongIdentifiers(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	t.Run("an event", inBubble(func(t *testing.T) {
		s := newScript(t, wiretest.LegacyRevision, "HTTP GET", func(_ *scripted, c call) reply {
			if n := len(c.header.Get("Last-Event-Id")); n > 4096 {
				t.Errorf("an identifier of %d bytes", n)
			}
			return reply{header: map[string]string{"Content-Type": "text/event-stream"}, body: strings.NewReader("id: " + long + "\ndata:\n\n")}
		})
		s.connect(gosdk.ClientOptions{})
		time.Sleep(time.Minute)
		if len(s.of("HTTP GET")) < 2 {
			t.Error("the stream was not resumed")
		}
	}))
	t.Run("a task", inEveryRevision(func(t *testing.T, revision string) {
		s := newScript(t, revision, "tools/call", func(s *scripted, _ call) reply { return s.created(long) })
		_, err := mcptask.Start[number](t.Context(), s.connect(gosdk.ClientOptions{}), "tool", number{})
		if err == nil || !strings.Contains(err.Error(), "1048576 bytes") || len(err.Error()) > 500 {
			t.Errorf("%.500v", err)
		}
	}))
}

// TestHugeList: a list of tools has a bound in all, whatever its pages have.
func TestHugeList(t *testing.T) {
	everyRevision(t, func(t *testing.T, revision string) {
		var sent atomic.Int64
		s := newScript(t, revision, "tools/list", func(_ *scripted, c call) reply {
			sent.Add(50 << 10)
			return result(`{%s,"tools":[{"name":"t%d","description":"%s","inputSchema":{"type":"object"}}],"nextCursor":"%[2]d"}`,
				complete, c.n, strings.Repeat("x", 50<<10))
		})
		_, err := s.connect(gosdk.ClientOptions{MaxMessage: 64 << 10}).ListTools(t.Context())
		if err == nil || !strings.Contains(err.Error(), "ClientOptions.MaxMessage") {
			t.Error(err)
		}
		if n := sent.Load(); n > 1<<20 {
			t.Errorf("%d bytes were taken", n)
		}
	})
}

// TestStreamsLeftOpen: a server that answers on a stream and does not end it keeps
// nothing of its client's busy.
func TestStreamsLeftOpen(t *testing.T) {
	everyRevision(t, func(t *testing.T, revision string) {
		var open atomic.Int32
		s := newScript(t, revision, "tools/list", func(_ *scripted, c call) reply {
			return reply{stream: func(send func(string)) {
				open.Add(1)
				defer open.Add(-1)
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s,"tools":[]}}`, c.id, complete))
				<-c.ctx.Done()
			}}
		})
		conn := s.connect(gosdk.ClientOptions{})
		for range 50 {
			if _, err := conn.ListTools(t.Context()); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		if n := open.Load(); n > 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}

// TestSilentStandaloneStream: a server that never answers the request for a stream
// holds Connect up no longer than its context.
func TestSilentStandaloneStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newScript(t, wiretest.LegacyRevision, "HTTP GET", func(_ *scripted, c call) reply {
			<-c.ctx.Done()
			return reply{}
		})
		ctx := within(t, time.Minute)
		began := time.Now()
		conn, err := gosdk.Connect(ctx, "http://script/mcp", gosdk.ClientOptions{Revision: s.revision, HTTPClient: s.client()})
		if took := time.Since(began); took > time.Minute {
			t.Errorf("Connect took %v", took)
		}
		if err == nil {
			_ = conn.Close()
		}
	})
}

// TestPagesToOpen: an error that asks for pages to be opened has a bound too.
func TestPagesToOpen(t *testing.T) {
	everyRevision(t, func(t *testing.T, revision string) {
		var opened atomic.Int32
		s := newScript(t, revision, "tools/call", func(*scripted, call) reply {
			var all []string
			for i := range 5000 {
				all = append(all, fmt.Sprintf(`{"mode":"url","message":"?","url":"https://example.com/%d","elicitationId":"%[1]d"}`, i))
			}
			return reply{err: fmt.Sprintf(`{"code":-32042,"message":"open these","data":{"elicitations":[%s]}}`, strings.Join(all, ","))}
		})
		ctx := within(t, time.Minute)
		_, err := mcptask.Run[number](ctx, s.connect(gosdk.ClientOptions{OpenURL: func(context.Context, mcptask.Question) error {
			opened.Add(1)
			return nil
		}}), "tool", number{})
		if n := opened.Load(); err == nil || n > 16 {
			t.Errorf("%d pages, %v", n, err)
		}
	})
}
