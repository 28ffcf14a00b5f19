package gateway

import (
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// mostUnread is how many bytes of replies wait for a client on a pipe that does not
// read. The room lets the goroutine that reads its requests go on, and see their end.
const mostUnread = 1 << 20

// outlet writes lines to one client, in the order in which they were put. One
// goroutine writes; nobody else ever waits in a write of the client's.
type outlet struct {
	w io.Writer
	// leave is called once, when the client is found not to read any longer.
	leave func()

	mu      sync.Mutex
	changed sync.Cond
	lines   [][]byte
	size    int  // bytes of the lines, with the one that is being written
	waiting int  // calls that wait for room
	serial  int  // of the line that is being written
	late    bool // that line takes longer than it may
	gone    bool // nobody reads: what is put is dropped
	ended   bool // nothing is put any longer
}

func newOutlet(w io.Writer, logger *slog.Logger, leave func()) *outlet {
	o := &outlet{w: w, leave: leave}
	o.changed.L = &o.mu
	go o.run(logger)
	return o
}

// put waits until all that was put before is written: its caller then makes the next
// line from the latest news, however slowly the client reads.
func (o *outlet) put(line []byte) { o.putWithin(line, 0) }

// putSoon waits only when the client has left much unread.
func (o *outlet) putSoon(line []byte) { o.putWithin(line, mostUnread) }

// putWithin puts a line when no more than most bytes would wait then, or none do. A
// client that leaves more unread for as long as writing takes at most is gone.
func (o *outlet) putWithin(line []byte, most int) {
	line = slices.Concat(line, []byte("\n"))
	o.mu.Lock()
	for !o.gone && o.size > 0 && o.size+len(line) > most {
		if o.late {
			o.drop()
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
	o.changed.Broadcast() // one less waits, too
	o.mu.Unlock()
}

// drop forgets what is unread. o.mu is held.
func (o *outlet) drop() {
	o.gone, o.lines, o.size = true, nil, 0
	o.changed.Broadcast()
}

// flush waits until all is written or the client is gone, for a while. It says
// whether nothing is left.
func (o *outlet) flush(most time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	over := false
	defer time.AfterFunc(most, func() {
		defer guard.Recover(nil, "the end of a flush")
		o.mu.Lock()
		defer o.mu.Unlock()
		over = true
		o.changed.Broadcast()
	}).Stop()
	for o.size+o.waiting > 0 && !over {
		o.changed.Wait()
	}
	return o.size == 0
}

// end ends the writing. What is left after a while is dropped.
func (o *outlet) end(most time.Duration) {
	flushed := o.flush(most)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if !flushed {
		o.drop()
	}
	o.changed.Broadcast()
}

// run writes until the end.
func (o *outlet) run(logger *slog.Logger) {
	defer guard.Recover(logger, "writing to a pipe")
	defer func() { // also where the writer panics
		o.mu.Lock()
		defer o.mu.Unlock()
		o.drop()
	}()
	for {
		line, serial := o.next()
		if line == nil {
			return
		}
		overdue := time.AfterFunc(writeTime(len(line)), func() { defer guard.Recover(nil, "an overdue write"); o.overdue(serial) })
		_, err := o.w.Write(line)
		overdue.Stop()
		if err != nil {
			return // a client that has left; the end of its input ends the rest
		}
		o.written(len(line))
	}
}

// next waits for the next line; nil is the end.
func (o *outlet) next() (line []byte, serial int) {
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

// overdue notes that a line takes longer than it may, if it is still being written.
func (o *outlet) overdue(serial int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.serial == serial {
		o.late = true
		o.changed.Broadcast()
	}
}

// written notes that the line is written.
func (o *outlet) written(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.serial++
	o.late = false
	if !o.gone {
		o.size -= n
	}
	o.changed.Broadcast()
}
