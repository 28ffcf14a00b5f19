package gateway

import (
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// maxUnreadBytes limits the bytes of replies that wait for a client that does not read its pipe.
// This buffer keeps the goroutine that reads the client's requests running, so that it sees their
// end.
const maxUnreadBytes = 1 << 20

// lineWriter writes lines to one client in the order of the calls. One goroutine writes, so no
// caller waits in a write to the client.
type lineWriter struct {
	w io.Writer
	// leave is called once, when the client no longer reads.
	leave func()

	mu      sync.Mutex
	changed sync.Cond
	lines   [][]byte
	size    int  // bytes of the lines, including the line that is being written
	waiting int  // calls that wait for room
	serial  int  // number of the line that is being written
	late    bool // the write of that line has missed its deadline
	gone    bool // the client does not read: lines are dropped
	ended   bool // no more lines are accepted
}

func newLineWriter(w io.Writer, logger *slog.Logger, leave func()) *lineWriter {
	o := &lineWriter{w: w, leave: leave}
	o.changed.L = &o.mu
	go o.run(logger)
	return o
}

// put waits until all earlier lines are written. So its caller makes its next line from the latest
// state, however slowly the client reads.
func (o *lineWriter) put(line []byte) { o.putWithin(line, 0) }

// putAll is put for several lines.
func (o *lineWriter) putAll(lines [][]byte) {
	for _, line := range lines {
		o.put(line)
	}
}

// putBuffered waits only if the client leaves too much unread.
func (o *lineWriter) putBuffered(line []byte) { o.putWithin(line, maxUnreadBytes) }

// putWithin adds a line once at most most bytes would then wait, or no bytes wait. A client that
// leaves more unread for longer than a write may take is gone.
func (o *lineWriter) putWithin(line []byte, most int) {
	line = slices.Concat(line, []byte("\n"))
	o.mu.Lock()
	for !o.gone && o.size > 0 && o.size+len(line) > most {
		if o.late {
			o.dropLines()
			o.mu.Unlock()
			o.leave()
			return
		}
		o.waiting++
		o.changed.Wait()
		o.waiting--
	}
	if !o.gone && !o.ended {
		o.lines = append(o.lines, line)
		o.size += len(line)
	}
	o.changed.Broadcast() // also for flush: one call fewer waits
	o.mu.Unlock()
}

// dropLines discards all unwritten lines. o.mu is held.
func (o *lineWriter) dropLines() {
	o.gone, o.lines, o.size = true, nil, 0
	o.changed.Broadcast()
}

// flush waits until everything is written, the client is gone, or the time is over. It returns
// whether everything is written.
func (o *lineWriter) flush(most time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	over := false
	defer time.AfterFunc(most, guard.Func(nil, "the end of a flush", func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		over = true
		o.changed.Broadcast()
	})).Stop()
	for o.size+o.waiting > 0 && !over {
		o.changed.Wait()
	}
	return o.size == 0
}

// end stops the writing. It drops the lines that are unwritten after the given time.
func (o *lineWriter) end(most time.Duration) {
	flushed := o.flush(most)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if !flushed {
		o.dropLines()
	}
	o.changed.Broadcast()
}

// run writes lines until the end.
func (o *lineWriter) run(logger *slog.Logger) {
	defer guard.Recover(logger, "writing to a pipe")
	defer func() { // also if the writer panics
		o.mu.Lock()
		defer o.mu.Unlock()
		o.dropLines()
	}()
	for {
		line, serial := o.nextLine()
		if line == nil {
			return
		}
		overdue := time.AfterFunc(writeTime(len(line)), func() { defer guard.Recover(nil, "an overdue write"); o.noteOverdue(serial) })
		_, err := o.w.Write(line)
		overdue.Stop()
		if err != nil {
			return // the client has disconnected; the end of its input ends the pipe
		}
		o.noteWritten(len(line))
	}
}

// nextLine waits for the next line. It returns nil at the end.
func (o *lineWriter) nextLine() (line []byte, serial int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) == 0 && !o.gone && !o.ended {
		o.changed.Wait()
	}
	if len(o.lines) == 0 {
		return nil, 0
	}
	line = o.lines[0]
	o.lines = o.lines[1:]
	return line, o.serial
}

// noteOverdue notes that the write of a line has missed its deadline, if it still runs.
func (o *lineWriter) noteOverdue(serial int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.serial == serial {
		o.late = true
		o.changed.Broadcast()
	}
}

// noteWritten notes that a line is written.
func (o *lineWriter) noteWritten(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.serial++
	o.late = false
	if !o.gone {
		o.size -= n
	}
	o.changed.Broadcast()
}
