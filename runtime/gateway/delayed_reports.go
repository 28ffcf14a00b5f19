package gateway

import (
	"slices"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

const (
	// progressPause is how long a report of progress waits for the answer to its request. If both come together,
	// published clients handle the answer first and forget the token. Then the report is an error to them.
	progressPause = 10 * time.Millisecond
	// maxDelayedReports limits the reports that wait.
	maxDelayedReports = 100
)

// delayedReports delays the progress that an SDK reports on a pipe. If the answer to the request comes meanwhile, the report
// is dropped: the answer says more. If the answer is a task, the report belongs to the task and follows the answer.
type delayedReports struct {
	put func(line []byte)

	mu      sync.Mutex
	delayed []delayedReport
	timer   *time.Timer // nil if nothing is delayed
}

type delayedReport struct {
	token string
	line  []byte
}

// delay keeps a report for progressPause.
func (h *delayedReports) delay(token string, line []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.delayed = append(h.delayed, delayedReport{token, line})
	switch {
	case len(h.delayed) >= maxDelayedReports:
		h.send()
	case h.timer == nil:
		h.timer = time.AfterFunc(progressPause, func() {
			defer guard.Recover(nil, "the progress on a pipe")
			h.sendAll()
		})
	}
}

// drop removes the reports of a request that is answered. token may be "".
func (h *delayedReports) drop(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.delayed = slices.DeleteFunc(h.delayed, func(r delayedReport) bool { return r.token == token })
}

// sendAll sends the delayed reports.
func (h *delayedReports) sendAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send()
}

// send does the work of sendAll. h.mu is held, so drop waits until the reports are written.
func (h *delayedReports) send() {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	for _, report := range h.delayed {
		h.put(report.line)
	}
	h.delayed = nil
}
