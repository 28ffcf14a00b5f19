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
	// maxHeldReports limits the reports that wait.
	maxHeldReports = 100
)

// heldReports delays the progress that an SDK reports on a pipe. If the answer to the request comes meanwhile, the report
// is dropped: the answer says more. If the answer is a task, the report belongs to the task and follows the answer.
type heldReports struct {
	put func(line []byte)

	mu    sync.Mutex
	held  []heldReport
	timer *time.Timer // nil if nothing is held
}

type heldReport struct {
	token string
	line  []byte
}

// hold keeps a report for progressPause.
func (h *heldReports) hold(token string, line []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, heldReport{token, line})
	switch {
	case len(h.held) >= maxHeldReports:
		h.send()
	case h.timer == nil:
		h.timer = time.AfterFunc(progressPause, func() {
			defer guard.Recover(nil, "the progress on a pipe")
			h.sendAll()
		})
	}
}

// drop removes the reports of a request that is answered. token may be "".
func (h *heldReports) drop(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = slices.DeleteFunc(h.held, func(r heldReport) bool { return r.token == token })
}

// sendAll sends the reports that are held.
func (h *heldReports) sendAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send()
}

// send does the work of sendAll. h.mu is held, so drop waits until the reports are written.
func (h *heldReports) send() {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	for _, report := range h.held {
		h.put(report.line)
	}
	h.held = nil
}
