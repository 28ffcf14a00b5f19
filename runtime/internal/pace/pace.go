// Package pace decides when a client polls next, and when it gives up.
package pace

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// Bounds on failures and pauses.
const (
	// MaxFailures is how many failures in a row do not end the polls.
	MaxFailures = 6
	// MaxPause bounds the pauses after failures, and between polls that are only for safety.
	MaxPause = 30 * time.Second
	// Margin is the time by which a limit may be exceeded.
	Margin = time.Minute
	// MinInterval and MaxInterval bound the interval that a peer asks for. With less, the
	// client would flood the peer. With more, the task might be gone before the next poll.
	MinInterval = 100 * time.Millisecond
	MaxInterval = time.Hour

	maxLimited = 4  // after this many pauses they grow no longer
	rarely     = 10 // intervals between polls that are only for safety
	forever    = 100 * 365 * 24 * time.Hour
)

// Pace is the pace of the polls for one task. Default must be set. It is not safe for concurrent
// use.
type Pace struct {
	// Default is the interval if the peer does not ask for one.
	Default time.Duration
	// Last is when the task will be gone, if that is known before the first answer.
	Last time.Time
	// Due is the time of the next poll.
	Due time.Time

	interval time.Duration // the peer's, or Default
	failures int           // in a row
	limited  int           // in a row
	live     bool          // the peer sends changes,
	caught   bool          // and has answered, or sent one, since it began to
	began    time.Time     // the first answer
	life     time.Duration // negative means forever
	soon     bool          // the poll under way may return an outdated answer
}

// NoteAnswer sets the next poll after an answer, or after a change that the peer has sent. The
// next poll comes after the interval that the peer asks for, within bounds, and up to a tenth
// later, so that many clients do not poll in step. life is how long the task lives from the first
// answer; negative means forever.
func (p *Pace) NoteAnswer(interval, life time.Duration) {
	interval = p.boundInterval(interval, life)
	if p.began.IsZero() {
		p.began = time.Now()
	}
	p.interval, p.life, p.failures, p.limited, p.caught = interval, life, 0, 0, p.live
	if p.Due = p.scheduleAfter(0); p.soon {
		p.Due = time.Time{}
	}
}

// boundInterval bounds an interval that a peer asks for. It leaves room for two polls in a life.
func (p *Pace) boundInterval(interval, life time.Duration) time.Duration {
	most := MaxInterval
	if life >= 0 {
		most = min(most, max(life/2, p.Default))
	}
	return max(min(cmp.Or(max(interval, 0), p.Default), most), MinInterval)
}

// PollNow sets the next poll to now. If a poll is under way, another one follows, since the
// answer of the first may be outdated.
func (p *Pace) PollNow() { p.soon, p.Due = true, time.Time{} }

// CheckTrust is called with each answer, before NoteAnswer. changed says that the answer has news.
// If the peer should have sent that news and has not, its changes no longer count as live until
// SetLive.
func (p *Pace) CheckTrust(changed bool) { p.live = p.live && !(p.caught && changed) }

// RestartInterval sets the next poll after an answer that is older than a change that the peer
// has sent.
func (p *Pace) RestartInterval() { p.Due = p.scheduleAfter(0) }

// SetLive says whether the peer sends changes, so that polls are only for safety.
func (p *Pace) SetLive(live bool) {
	p.live, p.caught = live, p.caught && live
	if due := p.scheduleAfter(0); !live && due.Before(p.Due) {
		p.Due = due
	}
}

// NoteFailure puts the next poll off after a failure, longer each time and at least by pause. It
// reports whether to give up.
func (p *Pace) NoteFailure(pause time.Duration) bool {
	p.Due = p.scheduleAfter(max(pause, min(p.Default<<p.failures, MaxPause)))
	if p.failures++; p.failures <= MaxFailures {
		return false
	}
	p.failures = 0 // a caller that goes on has as many tries again
	return true
}

// NoteLimit puts the next poll off if the peer says that there were too many. That is not a reason
// to give up.
func (p *Pace) NoteLimit(pause time.Duration) {
	p.failures, p.limited = 0, min(p.limited+1, maxLimited)
	p.Due = p.scheduleAfter(max(pause, min(max(p.interval, p.Default), MaxPause)<<p.limited))
}

// giveUpTime returns when to give up even if there are answers: after the task's life, by the
// local clock, and Margin. Zero means never.
func (p *Pace) giveUpTime() time.Time {
	switch {
	case p.began.IsZero() && !p.Last.IsZero():
		return p.Last.Add(Margin)
	case p.began.IsZero() || p.life < 0:
		return time.Time{}
	}
	return p.began.Add(min(p.life, forever) + Margin)
}

// IsOver reports whether it is time to give up even if there are answers.
func (p *Pace) IsOver() bool {
	end := p.giveUpTime()
	return !end.IsZero() && !time.Now().Before(end)
}

// Bound is a context for a question, which begins now and ends when no answer can
// come.
func (p *Pace) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	p.soon = false
	end := p.giveUpTime()
	if end.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, max(time.Until(end), Margin))
}

// scheduleAfter returns the time after a pause or the interval, whichever is longer.
func (p *Pace) scheduleAfter(pause time.Duration) time.Time {
	interval := cmp.Or(p.interval, p.Default)
	if p.live && interval < MaxPause {
		pause = max(pause, min(rarely*interval, MaxPause))
	}
	interval = min(max(interval, pause), forever)
	due := time.Now().Add(interval + rand.N(interval/10+1))
	if end := p.giveUpTime(); !end.IsZero() && end.Before(due) && time.Now().Before(end) {
		return end // gives up at that time, not an interval later
	}
	return due
}

// Retry calls work again after each pause while passes reports that its error may pass, until ctx
// ends. It returns the last error.
func Retry(ctx context.Context, pause time.Duration, passes func(error) bool, work func() error) error {
	for {
		err := work()
		if err == nil || !passes(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
