package temporal

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// TestKeysAway checks that neither an answer nor a result is lost while the client's data converter fails, however long
// that is, and that the task says once why it does not end.
func TestKeysAway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		policy := buildPolicy
		policy.TTL = 48 * time.Hour
		failing := func(failed string) {
			c.setFail(func(call string) error {
				if call == failed {
					return errors.New("the key server is away")
				}
				return nil
			})
		}
		failing("signal")
		s := newBuildServer(t, nil, policy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		f.show(flowwire.State{Questions: askFor("a")})
		awaitAsked(t, s, task.ID, "Build/a")
		replyTo(t, s, task.ID, "Build/a", `{"action":"accept","content":{"approve":true}}`)
		time.Sleep(10 * time.Hour)
		failing("get")
		if got := f.receive(t); got.Key != "a" || got.Refusal != "" {
			t.Errorf("%+v", got)
		}
		f.mu.Lock()
		f.err = errNoTemporal // so that there is another request for the result
		f.mu.Unlock()
		close(f.ended)
		f.mu.Lock()
		f.state = func() (flowwire.State, error) { panic("the key server is away") }
		f.mu.Unlock()
		told := awaitBuild(t, s, task.ID, "the reason", func(r taskstore.Record) bool {
			return r.StatusMessage == "the result of the workflow Build cannot be read yet: its data converter fails"
		})
		f.restart("run-1")
		f.show(flowwire.State{Reports: 5, Done: 5, Total: 5, Message: "built"})
		f.end(built{Image: "shop:1"}, nil)
		time.Sleep(10 * time.Hour)
		if r, err := s.Backend().Get(t.Context(), builder, task.ID); err != nil || r.Version != told.Version {
			t.Errorf("%q, %v", r.StatusMessage, err)
		}
		c.setFail(nil)
		if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") {
			t.Error(buildOutcome(r))
		}
	})
}

// TestRefusalOutage checks that a refusal waits for Temporal, as an answer does.
func TestRefusalOutage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		f.show(flowwire.State{Questions: askFor("a")})
		awaitAsked(t, s, task.ID, "Build/a")
		c.setFail(func(string) error { return errNoTemporal })
		replyTo(t, s, task.ID, "Build/a", `{"action":"decline"}`)
		time.Sleep(5 * time.Minute)
		c.setFail(nil)
		if got := f.receive(t); got.Refusal != flowwire.RefusedDeclined {
			t.Errorf("%+v", got)
		}
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
}

// TestRefusedAnswer checks that an answer that Temporal does not take becomes a refusal, that a refusal is sent once
// then, and that the task says why its workflow waits.
func TestRefusedAnswer(t *testing.T) {
	for response, signals := range map[string]int{`{"action":"accept","content":{"approve":true}}`: 2, `{"action":"decline"}`: 1} {
		bubble.Run(t, response, func(t *testing.T) {
			c := newFakeTemporal()
			c.setFail(func(call string) error {
				if call == "signal" {
					return serviceerror.NewInvalidArgument("exceeded workflow execution limit for signal events")
				}
				return nil
			})
			s := newBuildServer(t, nil, buildPolicy, runBuild(c))
			task := beginBuild(t, s)
			f := <-c.begun
			f.show(flowwire.State{Questions: askFor("a")})
			awaitAsked(t, s, task.ID, "Build/a")
			replyTo(t, s, task.ID, "Build/a", response)
			awaitBuild(t, s, task.ID, "the reason", func(r taskstore.Record) bool {
				return r.StatusMessage == "the workflow Build waits for an answer, which Temporal does not take"
			})
			time.Sleep(10 * time.Minute)
			if n := c.counted("signal"); n != signals {
				t.Errorf("%d signals, want %d", n, signals)
			}
			f.end(built{}, nil)
			awaitBuild(t, s, task.ID, "its end", isBuilt)
		})
	}
}

// TestPanickingSignal checks that an answer is sent again after a panic of the data converter, that the task says so
// while it panics, and that the log has the panic once.
func TestPanickingSignal(t *testing.T) {
	var log bytes.Buffer // read after the last write
	former := slog.Default()
	defer slog.SetDefault(former)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		f.show(flowwire.State{Reports: 1, Message: "waiting", Questions: askFor("a")})
		awaitAsked(t, s, task.ID, "Build/a")
		c.failCall("signal", away["panic"])
		replyTo(t, s, task.ID, "Build/a", `{"action":"accept","content":{"approve":true}}`)
		time.Sleep(10 * time.Minute)
		awaitBuild(t, s, task.ID, "the reason", func(r taskstore.Record) bool {
			return r.StatusMessage == "an answer for the workflow Build cannot be sent yet: its data converter fails"
		})
		c.setFail(nil)
		if got := f.receive(t); got.Refusal != "" {
			t.Errorf("%+v", got)
		}
		awaitBuild(t, s, task.ID, "the report", func(r taskstore.Record) bool { return r.StatusMessage == "waiting" })
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
	if n := strings.Count(log.String(), "an answer for the workflow Build panicked"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &log)
	}
}

// beginLaterRun begins a task whose first run makes no request for a workflow, or starts it. It returns the server that
// goes on with the task in a second run, once prepare has returned.
func beginLaterRun(t *testing.T, c *fakeTemporal, isStarted bool, prepare func()) (s *taskserver.Server, id string) {
	t.Helper()
	build := func(ctx context.Context, task *mcptask.Task) (built, error) {
		if task.Attempt() == 1 && !isStarted { // other work comes first
			<-ctx.Done()
			return built{}, ctx.Err()
		}
		return runBuild(c)(ctx, task)
	}
	store := taskstore.NewMemory()
	first := newBuildServer(t, store, buildPolicy, build)
	task := beginBuild(t, first)
	synctest.Wait()
	prepare()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	return newBuildServer(t, store, buildPolicy, build), task.ID
}

// TestJoinWhileAway checks that a later run joins its workflow even if the start is refused, whatever the reason.
func TestJoinWhileAway(t *testing.T) {
	refusals := maps.Clone(away)
	refusals["arguments"] = func() error { return serviceerror.NewInvalidArgument("no") }
	for name, refuse := range refusals {
		bubble.Run(t, name, func(t *testing.T) {
			c := newFakeTemporal()
			second, id := beginLaterRun(t, c, true, func() { c.failCall("start", refuse) })
			time.Sleep(time.Minute)
			(<-c.begun).end(built{Image: "shop:1"}, nil)
			if r := awaitBuild(t, second, id, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") {
				t.Error(buildOutcome(r))
			}
		})
	}
}

// TestFirstStartOfLaterRun checks that the first start of a workflow fails the task if it is refused, also in a later
// run of the handler.
func TestFirstStartOfLaterRun(t *testing.T) {
	for name, refuse := range away {
		bubble.Run(t, name, func(t *testing.T) {
			c := newFakeTemporal()
			second, id := beginLaterRun(t, c, false, func() { c.failCall("start", refuse) })
			before := time.Now()
			if r := awaitBuild(t, second, id, "its end", isBuilt); !strings.Contains(buildOutcome(r), "the workflow Build was not started") || time.Since(before) > time.Minute {
				t.Errorf("%s after %v", buildOutcome(r), time.Since(before))
			}
		})
	}
}

// TestUnknownStart checks that a later run waits while it can find out neither whether its workflow exists nor start
// it, and that the task says why.
func TestUnknownStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		second, id := beginLaterRun(t, c, true, func() {
			c.setFail(func(string) error { return away["credentials"]() })
		})
		awaitBuild(t, second, id, "the reason", func(r taskstore.Record) bool {
			return r.StatusMessage == "Temporal refuses this server: the task goes on when it no longer does"
		})
		time.Sleep(10 * time.Minute)
		c.setFail(nil)
		(<-c.begun).end(built{Image: "shop:1"}, nil)
		if r := awaitBuild(t, second, id, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") {
			t.Error(buildOutcome(r))
		}
	})
}

// TestLostStart checks that a workflow is joined if the answer to its start is lost, also if the next start is refused.
func TestLostStart(t *testing.T) {
	for lost, lose := range map[string]func() error{"outage": func() error { return errNoTemporal }, "panic": away["panic"]} {
		for refused, refuse := range away {
			bubble.Run(t, lost+" "+refused, func(t *testing.T) {
				c := newFakeTemporal()
				c.lose = lose
				c.failCall("start", func() error {
					if c.counted("start") > 1 {
						return refuse()
					}
					return nil
				})
				s := newBuildServer(t, nil, buildPolicy, runBuild(c))
				task := beginBuild(t, s)
				f := <-c.begun
				time.Sleep(time.Minute)
				f.end(built{Image: "shop:1"}, nil)
				if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") {
					t.Error(buildOutcome(r))
				}
			})
		}
	}
}

// TestReadAgain checks that a task shows the progress again if its workflow runs after requests for the result have
// failed, and that it says so if they fail again.
func TestReadAgain(t *testing.T) {
	for name, fail := range map[string]func() error{"keys": away["keys"], "panic": away["panic"]} {
		bubble.Run(t, name, func(t *testing.T) {
			c := newFakeTemporal()
			policy := buildPolicy
			policy.TTL = 2 * longestGet
			s := newBuildServer(t, nil, policy, runBuild(c))
			c.failCall("get", fail)
			task := beginBuild(t, s)
			f := <-c.begun
			f.show(flowwire.State{Reports: 1, Done: 1, Total: 3, Message: "compiling"})
			isUnread := func(r taskstore.Record) bool { return strings.Contains(r.StatusMessage, "cannot be read yet") }
			awaitBuild(t, s, task.ID, "the reason", isUnread)
			c.setFail(nil)
			awaitBuild(t, s, task.ID, "the progress", func(r taskstore.Record) bool { return r.StatusMessage == "compiling (1/3)" })
			c.failCall("get", fail)
			awaitBuild(t, s, task.ID, "the reason", isUnread)
			c.setFail(nil)
			f.end(built{Image: "shop:1"}, nil)
			if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") {
				t.Error(buildOutcome(r))
			}
		})
	}
}

// TestLaterRunGoesOn checks that a failure that an earlier run has told goes when the workflow can be followed again.
func TestLaterRunGoesOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		c.failCall("query", func() error {
			return serviceerror.NewWorkflowNotReady("Unable to query workflow due to Workflow Task in failed state.")
		})
		var f *fakeFlow
		second, id := beginLaterRun(t, c, true, func() {
			f = <-c.begun
			time.Sleep(time.Minute)
			c.setFail(nil)
			f.show(flowwire.State{})
		})
		awaitBuild(t, second, id, "the message", func(r taskstore.Record) bool { return r.StatusMessage == "the workflow Build goes on" })
		f.end(built{}, nil)
		awaitBuild(t, second, id, "its end", isBuilt)
	})
}

// TestResultAfterTimeout checks that the result of a workflow that is over counts if it can be read soon after the
// handler has given up, and that nothing waits for the result of a workflow that has failed.
func TestResultAfterTimeout(t *testing.T) {
	failures := maps.Clone(away)
	failures["outage"] = func() error { return errNoTemporal }
	for name, fail := range failures {
		bubble.Run(t, name, func(t *testing.T) {
			c := newFakeTemporal()
			const patience = 10 * time.Minute
			c.failCall("get", fail)
			s := newBuildServer(t, nil, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
				ctx, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				return runBuild(c)(ctx, task)
			})
			task := beginBuild(t, s)
			(<-c.begun).end(built{Image: "shop:1"}, nil)
			time.Sleep(patience + time.Second)
			c.setFail(nil)
			if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") {
				t.Error(buildOutcome(r))
			}

			c.failCall("get", fail)
			task = beginBuild(t, s)
			(<-c.begun).end(nil, failWorkflow(errors.New("no disk left")))
			time.Sleep(patience + time.Second)
			c.setFail(nil)
			before := time.Now()
			awaitBuild(t, s, task.ID, "its end", isBuilt)
			if waited := time.Since(before); waited > 5*time.Second {
				t.Errorf("the end took %v", waited)
			}
		})
	}
}

// TestCancelWhileDenied checks that a workflow is cancelled when the credentials are back.
func TestCancelWhileDenied(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		synctest.Wait()
		c.setFail(func(string) error { return serviceerror.NewPermissionDenied("expired", "") })
		if _, _, err := s.Backend().Cancel(t.Context(), builder, task.ID); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		c.setFail(nil)
		time.Sleep(time.Minute)
		if len(f.cancels) == 0 {
			t.Error("the workflow was not cancelled")
		}
		f.end(built{}, nil)
	})
}

// TestCancelOutage checks that a cancellation waits for Temporal, and for a start that is under way.
func TestCancelOutage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		c.starting, c.canStart = make(chan struct{}), make(chan struct{})
		task := beginBuild(t, s)
		<-c.starting
		if _, _, err := s.Backend().Cancel(t.Context(), builder, task.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.setFail(func(string) error { return errNoTemporal })
		close(c.canStart)
		f := <-c.begun
		time.Sleep(10 * time.Second)
		c.setFail(nil)
		<-f.cancels
	})
}
