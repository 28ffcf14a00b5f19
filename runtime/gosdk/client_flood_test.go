package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
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
)

// TestFloodOfRequests: of the questions that a server asks beside its answers, a
// bounded number is under way, others are refused, and there is room again when
// some were answered.
func TestFloodOfRequests(t *testing.T) {
	const flood, most = 1000, 256
	eachWay(t, func(t *testing.T, connect connector) {
		release := make(chan struct{})
		var now, asked atomic.Int32
		answer := pipeline.AnswerApproval(func(ctx context.Context, _ mcptask.Question) (pipeline.Approval, error) {
			asked.Add(1)
			if n := now.Add(1); n > most {
				t.Errorf("%d at once", n)
			}
			defer now.Add(-1)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return pipeline.Approval{Approve: true}, nil
		})
		s := &scripted{t: t, revision: wiretest.LegacyRevision}
		var mu sync.Mutex
		answered, refused := 0, 0
		s.heard = func(body []byte) {
			var m struct {
				ID     string
				Result json.RawMessage
				Error  json.RawMessage
			}
			_ = json.Unmarshal(body, &m)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case m.Result != nil && m.ID != "":
				answered++
			case strings.Contains(string(m.Error), `"limit":"requests"`):
				refused++
			case m.Error != nil:
				t.Errorf("answered with %s", m.Error)
			}
		}
		count := func() (int, int) {
			mu.Lock()
			defer mu.Unlock()
			return answered, refused
		}
		s.answer = func(c call) reply {
			switch c.method {
			case "tasks/get":
				return s.state("t", "input_required")
			case "tasks/result":
				return reply{stream: func(send func(string)) {
					ask := func(id string) {
						send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"elicitation/create","params":%s}`, id,
							hostileQuestion(`{"type":"object","properties":{"approve":{"type":"boolean"}}}`)))
					}
					for i := range flood {
						ask(fmt.Sprint("q", i))
						ask(fmt.Sprint("q", i)) // one that comes again is one
					}
					<-c.ctx.Done()
				}}
			}
			return reply{}
		}
		conn := connect(s, gosdk.ClientOptions{Answer: answer})
		ctx, cancel := wiretest.WithTimeout(t, 10*time.Minute)
		go func() { _, _ = start(t, conn).Wait(ctx) }()
		time.Sleep(time.Minute)
		if n := runtime.NumGoroutine(); n > flood {
			t.Errorf("%d goroutines", n)
		}
		if _, r := count(); now.Load() != most || r < flood-most || r > 2*(flood-most) {
			t.Errorf("%d under way, %d refused", now.Load(), r)
		}
		close(release)
		time.Sleep(time.Minute)
		if a, _ := count(); a != most {
			t.Errorf("%d answered", a)
		}
		cancel()
		synctest.Wait()
	})
}

// TestFloodBeforeTheCall: so with the questions that come before a task.
func TestFloodBeforeTheCall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		answer := pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
			asked.Add(1)
			return pipeline.Approval{Approve: true}, nil
		})
		s := newScript(t, wiretest.ModernRevision, "tools/call", func(*scripted, call) reply {
			questions := map[string]json.RawMessage{}
			for i := range 5000 {
				questions[fmt.Sprint("q", i)] = json.RawMessage(`{"method":"elicitation/create","params":` +
					hostileQuestion(`{"type":"object","properties":{"approve":{"type":"boolean"}}}`) + `}`)
			}
			data, _ := json.Marshal(questions)
			return result(`{"resultType":"input_required","inputRequests":%s}`, data)
		})
		_, err := mcptask.Run[number](t.Context(), s.connect(gosdk.ClientOptions{Answer: answer}), "tool", number{})
		if err == nil || !strings.Contains(err.Error(), "5000 questions") || asked.Load() > 0 {
			t.Errorf("%v, %d asked", err, asked.Load())
		}
	})
}
