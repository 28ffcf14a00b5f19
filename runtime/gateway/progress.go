package gateway

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// progressStep is added to the last value if a report does not exceed it. Each value must exceed the one
// before.
const progressStep = 0.001

// mostProgress bounds the values that a handler reports, so that there are numbers above them.
const mostProgress = math.MaxFloat64 / 2

// progress reports the progress of one call. Its values increase, whatever the handler reports. While the
// call is open, it repeats the last report after each 15 seconds of silence, because hosts give up a
// silent call. It is safe for concurrent use.
type progress struct {
	send taskserver.ProgressFunc
	// runsFor returns how long the work has been running. It may take as long as the store does.
	runsFor func() time.Duration

	mu          sync.Mutex
	repeat      *time.Timer // nil once the call is answered
	begun       bool        // a value has been sent
	last, total float64
	message     string
}

// newProgress begins to report on work. Call stop when the call is answered.
func newProgress(send taskserver.ProgressFunc, runsFor func() time.Duration) *progress {
	p := &progress{send: send, runsFor: runsFor}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repeat = time.AfterFunc(keepAlive, p.sendAgain)
	return p
}

// report implements [taskserver.ProgressFunc].
func (p *progress) report(taskID string, done, total float64, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done == 0 && total == 0 || !isFinite(done) || !isFinite(total) { // a message alone, or no number on the wire
		done, total = p.last, p.total
	}
	p.total, p.message = total, message
	p.sendAbove(taskID, min(done, mostProgress), message)
	if p.repeat != nil {
		p.repeat.Reset(keepAlive)
	}
}

func isFinite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// sendAgain repeats the last report, with the time that the work has taken.
func (p *progress) sendAgain() {
	defer guard.Recover(nil, "the progress of a call")
	message := "running for " + p.runsFor().Round(time.Second).String()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.repeat == nil {
		return
	}
	if p.message != "" {
		message = fmt.Sprintf("%s (%s)", p.message, message)
	}
	p.sendAbove("", p.last, message)
	p.repeat.Reset(keepAlive)
}

// sendAbove sends a value, or the next one above the last. p.mu is held.
func (p *progress) sendAbove(taskID string, done float64, message string) {
	if p.begun && done <= p.last {
		done = max(p.last+progressStep, math.Nextafter(p.last, math.Inf(1)))
	}
	total := p.total
	if total > 0 {
		total = max(total, done)
	}
	p.begun, p.last = true, done
	p.send(taskID, done, total, message)
}

// stop ends the repetitions.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repeat.Stop()
	p.repeat = nil
}
