package temporal

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
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
		if got := <-f.signals; got.Key != "a" || got.Refusal != "" {
			t.Errorf("%+v", got)
		}
		f.mu.Lock()
		f.err = errNoTemporal // so that there is another request for the result
		f.mu.Unlock()
		close(f.ended)
		f.mu.Lock()
		f.state = func() (flowwire.State, error) { panic("the key server is away") }
		f.mu.Unlock()
		told := awaitBuild(t, s, task.ID, "the reason", func(r mcptask.Record) bool {
			return r.StatusMessage == "the result of the workflow Build cannot be read yet: its data converter fails"
		})
		f.restart("run-1")
		f.show(flowwire.State{Reports: 5, Done: 5, Total: 5, Message: "built"})
		f.end(built{Image: "shop:1"}, nil)
		time.Sleep(10 * time.Hour)
		if r, err := s.Get(t.Context(), builder, task.ID); err != nil || r.Version != told.Version {
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
		if got := <-f.signals; got.Refusal != flowwire.RefusedDeclined {
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
			awaitBuild(t, s, task.ID, "the reason", func(r mcptask.Record) bool {
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

// TestPanickingSignal checks that an answer is sent again after a panic of the data converter.
func TestPanickingSignal(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		f.show(flowwire.State{Questions: askFor("a")})
		awaitAsked(t, s, task.ID, "Build/a")
		c.setFail(func(call string) error {
			if call == "signal" {
				c.setFail(nil)
				panic("boom")
			}
			return nil
		})
		replyTo(t, s, task.ID, "Build/a", `{"action":"accept","content":{"approve":true}}`)
		if got := <-f.signals; got.Refusal != "" {
			t.Errorf("%+v", got)
		}
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
}

// TestJoinWhileAway checks that a run that joins a workflow waits for the keys of the data converter and for credentials.
func TestJoinWhileAway(t *testing.T) {
	for name, away := range map[string]error{"keys": errors.New("the key server is away"), "credentials": serviceerror.NewPermissionDenied("expired", "")} {
		bubble.Run(t, name, func(t *testing.T) {
			c, store := newFakeTemporal(), mcptask.NewMemoryStore()
			first := newBuildServer(t, store, buildPolicy, runBuild(c))
			task := beginBuild(t, first)
			f := <-c.begun
			synctest.Wait()
			c.setFail(func(call string) error {
				if call == "start" {
					return away
				}
				return nil
			})
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			second := newBuildServer(t, store, buildPolicy, runBuild(c))
			time.Sleep(time.Minute)
			c.setFail(nil)
			f.end(built{Image: "shop:1"}, nil)
			if r := awaitBuild(t, second, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") {
				t.Error(buildOutcome(r))
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
		if _, _, err := s.Cancel(t.Context(), builder, task.ID); err != nil {
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
		if _, _, err := s.Cancel(t.Context(), builder, task.ID); err != nil {
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
