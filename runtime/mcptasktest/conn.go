package mcptasktest

import (
	"context"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// testConn is a client's connection to the server of the same test. It sends a poll only if there
// may be news, because a test that waits for hours of virtual time polls thousands of times. To find
// out, it compares the version of the task in the server's store. Everything else goes over the
// wire. It is safe for concurrent use.
type testConn struct {
	mcptask.Conn    // the connection over the wire
	mcptask.Watcher // the same connection

	tasks     *taskserver.Server
	principal func(context.Context) (string, error)
	// spacing is a time between two polls that the server's limits always allow. Polls that come
	// sooner go over the wire, so that the server counts them.
	spacing time.Duration

	mu    sync.Mutex
	polls map[string]workingPoll // the last polls, by task
	// sendsAll sends every poll to the connection: somebody inspects the messages, or the connection has ended and
	// says so.
	sendsAll bool
}

// workingPoll is a poll that found a task working.
type workingPoll struct {
	at       time.Time
	version  int64 // the snapshot shows this version of the task or a later one
	snapshot mcptask.Snapshot
}

// newTestConn puts a testConn in front of a connection.
func newTestConn(conn mcptask.Conn, watcher mcptask.Watcher, tasks *taskserver.Server) *testConn {
	return &testConn{
		Conn: conn, Watcher: watcher, tasks: tasks, principal: tasks.Backend().Options().Principal,
		spacing: time.Second / time.Duration(tasks.Backend().Options().Limits.Polls), polls: map[string]workingPoll{},
	}
}

// Task implements mcptask.Conn.
func (c *testConn) Task(ctx context.Context, taskID string) (mcptask.Snapshot, error) {
	version := c.readVersion(ctx, taskID)
	c.mu.Lock()
	last, known := c.polls[taskID]
	noNews := known && !c.sendsAll && ctx.Err() == nil && last.version == version && time.Since(last.at) >= c.spacing
	if noNews {
		last.at = time.Now()
		c.polls[taskID] = last
	}
	c.mu.Unlock()
	if noNews {
		return last.snapshot, nil
	}
	snapshot, err := c.Conn.Task(ctx, taskID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if version > 0 && err == nil && snapshot.Status == mcptask.StatusWorking {
		c.polls[taskID] = workingPoll{time.Now(), version, snapshot}
	} else {
		delete(c.polls, taskID)
	}
	return snapshot, err
}

// Close implements mcptask.Conn.
func (c *testConn) Close() error {
	c.mu.Lock()
	c.sendsAll = true
	c.mu.Unlock()
	return c.Conn.Close()
}

// readVersion returns the version of a task. It returns 0 if the caller has no such task: the server then
// answers the poll.
func (c *testConn) readVersion(ctx context.Context, taskID string) int64 {
	principal, err := c.principal(ctx)
	if err != nil {
		return 0
	}
	record, err := c.tasks.Backend().Peek(taskID)
	if err != nil || record.Principal != principal || !c.tasks.Backend().Now().Before(record.ExpiresAt) {
		return 0
	}
	return record.Version
}
