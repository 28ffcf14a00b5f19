// Package pace decides when what is asked for again and again is asked for
// next, and when to give up.
package pace

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// Tries and pauses.
const (
	// MaxFailures is how many failures in a row are borne.
	MaxFailures = 6
	// MaxPause bounds the pauses after failures, and between questions that
	// only make sure.
	MaxPause = 30 * time.Second
	// Margin is what a limit may be exceeded by.
	Margin = time.Minute
	// MinInterval and MaxInterval bound the interval that a peer asks for: one that
	// asks for less would be flooded, or floods us; one that asks for more would not
	// be asked again before it is forgotten.
	MinInterval = 100 * time.Millisecond
	MaxInterval = time.Hour

	maxLimited = 4  // after this many pauses they grow no longer
	rarely     = 10 // intervals between questions that only make sure
	forever    = 100 * 365 * 24 * time.Hour
)

// Pace is the pace of one question. Default has to be set. It is not safe for
// concurrent use.
type Pace struct {
	// Default is the interval where the peer asks for none.
	Default time.Duration
	// Last is, before the first answer, when there will be none any more; zero
	// is not known.
	Last time.Time
	// Due is when to ask next, not sooner.
	Due time.Time

	interval time.Duration // the peer's, or Default
	failures int           // in a row
	limited  int           // in a row
	live     bool          // the peer tells of changes,
	caught   bool          // and has answered, or told one, since it began to
	began    time.Time     // the first answer
	life     time.Duration // negative is without end
	soon     bool          // the question under way may be too old
}

// Answered sets the next question after an answer, or what was told: at the
// interval that the peer asks for, within bounds, never sooner, and up to a tenth
// later, so that many do not ask in step. life is how long there will be answers, from
// the first; negative is for ever.
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

// bounded is an interval that a peer asks for, as it is kept: there are two questions
// in a life.
func (p *Pace) boundInterval(interval, life time.Duration) time.Duration {
	most := MaxInterval
	if life >= 0 {
		most = min(most, max(life/2, p.Default))
	}
	return max(min(cmp.Or(max(interval, 0), p.Default), most), MinInterval)
}

// Soon sets the next question to now, also where one is under way whose answer
// may be older than what makes it necessary.
func (p *Pace) PollNow() { p.soon, p.Due = true, time.Time{} }

// Asked takes note of an answer, before Answered: a change that the peer should
// have told, and has not, ends the trust until it tells one.
func (p *Pace) CheckTrust(changed bool) { p.live = p.live && !(p.caught && changed) }

// Overtaken sets the next question where an answer is older than what was told.
func (p *Pace) RestartInterval() { p.Due = p.scheduleAfter(0) }

// Told says whether the peer tells of changes, so that questions only make sure.
func (p *Pace) SetLive(live bool) {
	p.live, p.caught = live, p.caught && live
	if due := p.scheduleAfter(0); !live && due.Before(p.Due) {
		p.Due = due
	}
}

// Failed puts the next question off, longer each time and at least by pause,
// and says whether to give up.
func (p *Pace) NoteFailure(pause time.Duration) bool {
	p.Due = p.scheduleAfter(max(pause, min(p.Default<<p.failures, MaxPause)))
	if p.failures++; p.failures <= MaxFailures {
		return false
	}
	p.failures = 0 // who asks again tries as often again
	return true
}

// Limited puts the next question off where the peer says that it was asked too
// often. That is no reason to give up.
func (p *Pace) NoteLimit(pause time.Duration) {
	p.failures, p.limited = 0, min(p.limited+1, maxLimited)
	p.Due = p.scheduleAfter(max(pause, min(max(p.interval, p.Default), MaxPause)<<p.limited))
}

// end is when to give up though there are answers, zero for never: after their
// life, by the clock here, and Margin.
func (p *Pace) giveUpTime() time.Time {
	switch {
	case p.began.IsZero() && !p.Last.IsZero():
		return p.Last.Add(Margin)
	case p.began.IsZero() || p.life < 0:
		return time.Time{}
	}
	return p.began.Add(min(p.life, forever) + Margin)
}

// Over says whether it is time to give up though there are answers.
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

// after is in a pause or in the interval, whichever is longer.
func (p *Pace) scheduleAfter(pause time.Duration) time.Time {
	interval := cmp.Or(p.interval, p.Default)
	if p.live && interval < MaxPause {
		pause = max(pause, min(rarely*interval, MaxPause))
	}
	interval = min(max(interval, pause), forever)
	due := time.Now().Add(interval + rand.N(interval/10+1))
	if end := p.giveUpTime(); !end.IsZero() && end.Before(due) && time.Now().Before(end) {
		return end // to give up then, and not an interval later
	}
	return due
}

// Retry does work again, pause after pause, while it fails in a way that passes,
// until ctx ends. It returns the last error.
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
