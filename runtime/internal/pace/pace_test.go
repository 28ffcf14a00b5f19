package pace

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// in fails the test unless the next poll is due in d, or up to a tenth later.
func (p *Pace) in(t *testing.T, what string, d time.Duration) {
	t.Helper()
	if wait := time.Until(p.Due); wait < d || wait > d+d/10+1 {
		t.Errorf("%s: due in %v, want %v", what, wait, d)
	}
}

func TestPace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := Pace{Default: time.Second}
		if p.Due.After(time.Now()) {
			t.Error("the first question is due")
		}
		p.NoteAnswer(0, -1)
		p.in(t, "no interval", time.Second)
		p.NoteAnswer(5*time.Second, -1)
		p.in(t, "an interval", 5*time.Second)

		p.SetLive(true)
		p.in(t, "told, but not since an answer", 5*time.Second)
		p.CheckTrust(true) // it may have missed the beginning
		p.NoteAnswer(5*time.Second, -1)
		p.in(t, "told", MaxPause)
		p.NoteAnswer(2*time.Second, -1)
		p.in(t, "told, with a short interval", 20*time.Second)
		p.NoteAnswer(time.Hour, -1)
		p.in(t, "told, with a long interval", time.Hour)
		p.NoteAnswer(time.Second, -1)
		p.CheckTrust(false)
		p.NoteAnswer(time.Second, -1)
		p.in(t, "nothing has changed", 10*time.Second)
		p.CheckTrust(true)
		p.NoteAnswer(time.Second, -1)
		p.in(t, "it should have been told", time.Second)
		p.SetLive(true)
		p.NoteAnswer(time.Second, -1)
		p.in(t, "it tells again", 10*time.Second)
		p.SetLive(false)
		p.in(t, "no longer", time.Second)
		due := p.Due
		p.SetLive(false)
		if p.Due.After(due) {
			t.Error("put off")
		}
		p.RestartInterval()
		p.in(t, "overtaken", time.Second)
		_, stop := p.Bound(t.Context())
		stop()
		p.PollNow() // while the question is under way
		if p.NoteAnswer(time.Second, -1); p.Due.After(time.Now()) {
			t.Error("the answer may be too old")
		}
		_, stop = p.Bound(t.Context())
		stop()
		p.NoteAnswer(time.Hour, time.Nanosecond)
		p.in(t, "a life that is over at once", time.Second)
	})
}

// TestAbsurdIntervals checks that no interval that a peer asks for makes the client flood it, or
// poll after the task is gone.
func TestAbsurdIntervals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for _, c := range []struct{ asked, life, want time.Duration }{
			{1, -1, MinInterval},
			{time.Millisecond, time.Hour, MinInterval},
			{MinInterval, time.Nanosecond, MinInterval},
			{-1, -1, time.Second},
			{1<<63 - 1, -1, MaxInterval},
			{2 * MaxInterval, 1<<63 - 1, MaxInterval},
			{1<<63 - 1, 10 * time.Minute, 5 * time.Minute},
			{5 * time.Minute, 10 * time.Minute, 5 * time.Minute},
			{time.Hour, 0, time.Second},
		} {
			p := Pace{Default: time.Second}
			p.NoteAnswer(c.asked, c.life)
			p.in(t, fmt.Sprintf("%v of %v", c.asked, c.life), c.want)
		}
	})
}

func TestFailures(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := Pace{Default: time.Second}
		for range 2 { // a later wait tries as often again
			for n := range MaxFailures {
				if p.NoteFailure(0) {
					t.Fatalf("gave up after %d", n)
				}
				p.in(t, "failed", min(time.Second<<n, MaxPause))
			}
			if !p.NoteFailure(0) {
				t.Error("tries for ever")
			}
		}
		p.NoteAnswer(time.Minute, -1)
		if p.NoteFailure(0) {
			t.Error("gave up")
		}
		p.in(t, "not sooner than the interval", time.Minute)
		p.NoteFailure(time.Hour)
		p.in(t, "as the peer asks", time.Hour)

		p.NoteAnswer(10*time.Second, -1)
		for n := range 100 {
			p.NoteLimit(0)
			p.in(t, "limited", 10*time.Second<<min(n+1, maxLimited))
		}
		for range MaxFailures {
			if p.NoteFailure(0) {
				t.Error("a limit counts as a failure")
			}
		}
		p.NoteAnswer(time.Hour, -1)
		p.NoteLimit(0)
		p.in(t, "a long interval", time.Hour)
	})
}

func TestEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := Pace{Default: time.Second}
		p.NoteAnswer(time.Second, time.Hour)
		time.Sleep(time.Hour + Margin - 1)
		if p.IsOver() {
			t.Error("too soon")
		}
		ctx, stop := p.Bound(t.Context())
		defer stop()
		began := time.Now()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || time.Since(began) != Margin || !p.IsOver() {
			t.Errorf("%v after %v, over: %v", ctx.Err(), time.Since(began), p.IsOver())
		}
		p.NoteAnswer(time.Second, 2*time.Hour) // from the first answer
		if end := time.Until(p.giveUpTime()); p.IsOver() || end != time.Hour-Margin+1 {
			t.Errorf("ends in %v", end)
		}
		for _, life := range []time.Duration{-1, 1<<63 - 1} {
			p.NoteAnswer(time.Second, life)
			time.Sleep(24 * 365 * time.Hour)
			if p.IsOver() {
				t.Errorf("a life of %v is over", life)
			}
		}
		unanswered := Pace{Default: time.Second, Last: time.Now()}
		time.Sleep(Margin)
		if !unanswered.IsOver() {
			t.Error("nobody has answered for too long")
		}
		unanswered.NoteAnswer(time.Second, time.Hour)
		if unanswered.IsOver() {
			t.Error("it has answered")
		}
	})
}

func TestBell(t *testing.T) {
	var b Bell
	one, two := make(chan struct{}, 1), make(chan struct{}, 1)
	if !b.Empty() || !b.Wait(one) || b.Wait(two) || b.Empty() {
		t.Error("who waits")
	}
	b.Ring()
	b.Ring() // does not block
	<-one
	<-two
	if b.Leave(one) {
		t.Error("two is left")
	}
	b.Ring()
	<-two
	if len(one) > 0 || b.Leave(one) || !b.Leave(two) || !b.Empty() {
		t.Error("who has left")
	}
}
