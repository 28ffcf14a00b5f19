package push

import (
	"log/slog"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// mostLogs bounds the log records that wait for a logger. What comes beyond is dropped.
const mostLogs = 1000

// logs are the log records that wait. One goroutine writes them while there are any, so a
// logger that blocks holds up neither a mailbox, whose lock the caller may hold, nor a worker.
type logs struct {
	mu      sync.Mutex
	waiting []func()
	writing bool
}

// log has a record written.
func (h *Hub) log(level slog.Level, message string, attrs ...any) {
	l := &h.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= mostLogs {
		return
	}
	l.waiting = append(l.waiting, func() { h.server.Notice(level, message, attrs...) })
	if !l.writing {
		l.writing = true
		go h.writeLogs()
	}
}

// writeLogs writes until nothing waits.
func (h *Hub) writeLogs() {
	defer guard.Then(nil, "writing to the log", h.writeLogs) // the logger has panicked: on with the next
	for write := h.logs.next(); write != nil; write = h.logs.next() {
		write()
	}
}

func (l *logs) next() (write func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.waiting, l.writing = nil, false
		return nil
	}
	write = l.waiting[0]
	l.waiting = l.waiting[1:]
	return write
}
