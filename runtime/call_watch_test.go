package mcptask

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// toldConn is a Conn whose server sends changes.
type toldConn struct {
	fakeConn

	mu      sync.Mutex
	heard   map[string]func(bool, *Snapshot)
	stopped int
	ended   bool
}

func (c *toldConn) Ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *toldConn) Watch(taskID string, heard func(bool, *Snapshot)) (bool, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard == nil {
		c.heard = map[string]func(bool, *Snapshot){}
	}
	c.heard[taskID] = heard
	return true, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.heard, taskID)
		c.stopped++
	}
}

func (c *toldConn) tell(id string, live bool, s *Snapshot) {
	c.mu.Lock()
	heard := c.heard[id]
	c.mu.Unlock()
	if heard != nil {
		heard(live, s)
	}
}

// at returns a state with the time of its change by the server's clock.
func at(s Snapshot, seconds int) *Snapshot {
	s.UpdatedAt = epoch.Add(time.Duration(seconds) * time.Second)
	return &s
}

func TestToldCall(t *testing.T) {
	endless := func(context.Context, string, int) (Snapshot, error) { return working("t", time.Second), nil }
	bubble.Run(t, "is polled rarely, until it is no longer told", func(t *testing.T) {
		conn := &toldConn{fakeConn: fakeConn{task: endless}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		time.AfterFunc(time.Minute, func() { conn.tell("t", false, nil) })
		if _, err := started(t, conn).Wait(ctx); err == nil {
			t.Error("it ended")
		}
		var first, second int
		for _, read := range conn.readsOf("t") {
			if time.Since(read) > time.Minute {
				first++
			} else {
				second++
			}
		}
		if first > 8 || second < 50 {
			t.Errorf("%d polls while it was told, %d afterwards", first, second)
		}
		synctest.Wait()
		if conn.stopped != 1 {
			t.Errorf("stopped %d times", conn.stopped)
		}
	})
	bubble.Run(t, "knows old states", func(t *testing.T) {
		conn := &toldConn{fakeConn: fakeConn{task: endless}}
		call := started(t, conn)
		var seen []string
		go func() {
			time.Sleep(20 * time.Second)
			for _, second := range []int{1, 3, 2, 3, 4} {
				s := at(working("t", time.Second), second)
				s.Message = fmt.Sprint(second)
				conn.tell("t", true, s)
				time.Sleep(100 * time.Millisecond)
			}
			end := at(completed("t", 1), 0) // the last word, whatever its time
			conn.tell("t", true, end)
			conn.tell("t", true, at(working("t", time.Second), 9))
		}()
		for s, err := range call.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, string(s.Status)+s.Message)
		}
		if fmt.Sprint(seen) != "[working working1 working3 working4 completed]" {
			t.Errorf("%v", seen)
		}
	})
	bubble.Run(t, "is not put back by a poll that was overtaken", func(t *testing.T) {
		conn := &toldConn{}
		conn.task = func(context.Context, string, int) (Snapshot, error) {
			old := *at(working("t", time.Second), 1)
			old.Message = "old"
			conn.tell("t", true, at(working("t", time.Second), 2))
			return old, nil
		}
		call := started(t, conn)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for s, err := range call.Updates(ctx) {
			if s.Message == "old" || err != nil && ctx.Err() == nil {
				t.Errorf("the old state was shown: %+v, %v", s, err)
			}
		}
		if len(conn.readsOf("t")) == 0 {
			t.Error("no poll was overtaken")
		}
	})
	bubble.Run(t, "is settled when it is told", func(t *testing.T) {
		conn := &toldConn{}
		conn.task = func(_ context.Context, id string, _ int) (Snapshot, error) { return working(id, time.Hour), nil }
		all := calls(t, &conn.fakeConn, 50)
		for _, call := range all {
			call.pending.conn = conn
		}
		go func() {
			for i := range 50 {
				time.Sleep(time.Second)
				s := completed(fmt.Sprint(49-i), i)
				conn.tell(s.TaskID, true, &s)
			}
		}()
		began, n := time.Now(), 0
		for call, err := range Settled(t.Context(), all...) {
			if n++; err != nil || call != all[50-n] || time.Since(began) != time.Duration(n)*time.Second {
				t.Errorf("%d after %v: %v", n, time.Since(began), err)
			}
		}
		synctest.Wait()
		if n != 50 || conn.stopped != 50 {
			t.Errorf("%d settled, %d stopped", n, conn.stopped)
		}
	})
}
