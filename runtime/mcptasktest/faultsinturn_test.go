package mcptasktest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// turnStore lets one of its calls go wrong: the at-th that creates, reads, changes or deletes a task.
type turnStore struct {
	taskstore.Store
	at   int
	lose bool // the call is carried out, but its answer is lost

	mu    sync.Mutex
	calls int
	hit   string // the name of the call that went wrong
}

var errTurn = errors.New("dial tcp 10.0.0.7:5432: refused")

func turned[T any](s *turnStore, name string, do func() (T, error)) (T, error) {
	s.mu.Lock()
	s.calls++
	hit := s.calls == s.at
	if hit {
		s.hit = name
	}
	s.mu.Unlock()
	if !hit {
		return do()
	}
	if s.lose {
		_, _ = do()
	}
	var none T
	return none, errTurn
}

func (s *turnStore) Create(ctx context.Context, r taskstore.Record, q taskstore.Quota) (taskstore.Record, error) {
	return turned(s, "Create", func() (taskstore.Record, error) { return s.Store.Create(ctx, r, q) })
}

func (s *turnStore) Get(ctx context.Context, id string) (taskstore.Record, error) {
	return turned(s, "Get", func() (taskstore.Record, error) { return s.Store.Get(ctx, id) })
}

func (s *turnStore) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	return turned(s, "Update", func() (taskstore.Record, error) { return s.Store.Update(ctx, from, to, quota, steps...) })
}

func (s *turnStore) Delete(ctx context.Context, r taskstore.Record) error {
	_, err := turned(s, "Delete", func() (struct{}, error) { return struct{}{}, s.Store.Delete(ctx, r) })
	return err
}

type turnIn struct{}

type turnOut struct {
	Done bool `json:"done"`
}

// turnTools has a tool that asks, one that takes a while, and one that lasts.
func turnTools() mcptask.Tools {
	tool := func(name string, handler func(context.Context, *mcptask.Task) error) mcptask.Tool {
		spec := mcptask.ToolSpec{Name: name, InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour}}
		return mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, _ turnIn) (turnOut, error) {
			return turnOut{true}, handler(ctx, task)
		})
	}
	return mcptask.Tools{Service: "Turns", Impl: 1, Capabilities: napping(time.Second).Capabilities, Tools: []mcptask.Tool{
		tool("ask", func(ctx context.Context, task *mcptask.Task) error {
			task.Message(ctx, "before")
			a, err := mcptask.Ask[shipped](ctx, task, shippedInput, "ship", "Ship it?")
			if err == nil && !a.Ship {
				err = errors.New("not shipped")
			}
			return err
		}),
		tool("take", func(ctx context.Context, task *mcptask.Task) error {
			for range 3 {
				time.Sleep(time.Second)
				task.Message(ctx, "on")
			}
			return nil
		}),
		tool("last", func(ctx context.Context, _ *mcptask.Task) error { <-ctx.Done(); return ctx.Err() }),
	}}
}

type shipped struct {
	Ship bool `json:"ship"`
}

var shippedInput = mcptask.InputSpec{Name: "Shipped", Message: "Ship it?", Schema: `{"type":"object","properties":{"ship":{"type":"boolean"}},"required":["ship"]}`}

// clientTurns are the scenarios of a client, from the call to its end.
var clientTurns = map[string]func(ctx context.Context, conn mcptask.Conn) error{
	"answer": func(ctx context.Context, conn mcptask.Conn) error {
		return isDone(mcptask.Run[turnOut](ctx, conn, "ask", turnIn{}))
	},
	"wait": func(ctx context.Context, conn mcptask.Conn) error {
		return isDone(mcptask.Run[turnOut](ctx, conn, "take", turnIn{}))
	},
	"reconnect": func(ctx context.Context, conn mcptask.Conn) error {
		call, err := mcptask.Start[turnOut](ctx, conn, "ask", turnIn{})
		if err != nil {
			return err
		}
		token, _ := call.Token()
		if call, err = mcptask.Resume[turnOut](conn, "ask", token); err != nil {
			return err
		}
		return isDone(call.Wait(ctx))
	},
	"cancel": func(ctx context.Context, conn mcptask.Conn) error {
		call, err := mcptask.Start[turnOut](ctx, conn, "last", turnIn{})
		if err != nil {
			return err
		}
		time.Sleep(time.Minute)
		if err := call.Cancel(ctx); err != nil {
			return err
		}
		if _, err := call.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
			return errors.Join(errors.New("not cancelled"), err)
		}
		return nil
	},
}

func isDone(out turnOut, err error) error {
	if err == nil && !out.Done {
		err = errors.New("no output")
	}
	return err
}

// TestEachFaultInTurn runs each scenario of a client again and again. Each time another call of the server's
// store goes wrong. The client sees nothing of it, and the person is asked once.
func TestEachFaultInTurn(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		for name, does := range clientTurns {
			for _, lose := range []bool{false, true} {
				t.Run(name+map[bool]string{true: "/lost", false: "/refused"}[lose], func(t *testing.T) {
					for at := 1; ; at++ {
						store := &turnStore{Store: taskstore.NewMemory(), at: at, lose: lose}
						bubble.Test(t, func(t *testing.T) {
							var asked atomic.Int32
							options := mcptasktest.Options{Answer: mcptask.Answer(shippedInput, func(context.Context, mcptask.Question) (shipped, error) {
								asked.Add(1)
								return shipped{true}, nil
							})}
							options.Server = taskserver.Options{Store: store, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
							conn := mcptasktest.Connect(wirecheck.TB(t), revision, options, turnTools())
							ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
							defer stop()
							if err := does(ctx, conn); err != nil {
								t.Errorf("%v", err)
							}
							if n := asked.Load(); n > 1 {
								t.Errorf("the person was asked %d times", n)
							}
						})
						if t.Failed() {
							t.Fatalf("when call %d, %s, went wrong", at, store.hit)
						} else if store.hit == "" {
							if at == 1 {
								t.Error("no call went wrong")
							}
							t.Logf("%d calls", at-1)
							break
						}
					}
				})
			}
		}
	})
}
