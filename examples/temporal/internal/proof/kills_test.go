//go:build long && unix

package proof

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/temporal/internal/temporalserver"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// places is how many workers run at a time.
	places = 5
	// clients is how many clients have a task at a time.
	clients = 24
	// settleWithin bounds how long tasks may take to end after the last kill. It exceeds the longest pause between two
	// runs of a task, a minute.
	settleWithin = 3 * time.Minute
)

// countKills returns how many workers the test kills.
func countKills() int {
	if testing.Short() {
		return 10
	}
	return 100
}

var caller = taskserver.Caller{Principal: "proof", Revision: mcptask.Revision20260728, CanAsk: []string{"elicitation/create"}}

// TestKills kills workers of Temporal again and again, while clients submit tasks, answer their questions and cancel
// some of them.
func TestKills(t *testing.T) {
	begun := time.Now()
	engine := temporalserver.ForTest(t)
	directory := t.TempDir()
	config := workerConfig{
		Store: filepath.Join(directory, "tasks.db"), Journal: filepath.Join(directory, "journal"),
		Address: engine.Address(), Queue: fmt.Sprintf("kills-%x", rand.Uint64()),
	}
	options, release, err := config.options(t.Output(), true)
	if err != nil {
		t.Fatal(err)
	}
	server, err := taskserver.New(options, tools(notes{}))
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{t: t, server: server, tasks: map[string]*taskHistory{}}
	defer server.Backend().Observe(c.observe)()
	harm, disarm := context.WithCancel(t.Context())
	defer disarm()
	f := &fleet{t: t, config: config, kills: countKills(), killed: map[string]time.Time{}, disarm: disarm}
	following, leave := context.WithCancel(t.Context())
	defer leave()
	defer context.AfterFunc(harm, func() {
		_ = pause(following, settleWithin)
		leave()
	})()

	working, stop := context.WithCancel(t.Context())
	var workers, people sync.WaitGroup
	for place := range places {
		workers.Go(func() { f.keep(working, place) })
	}
	for range clients {
		people.Go(func() { c.submit(following, harm) })
	}
	people.Wait()
	lines := f.awaitRuns()
	stop()
	workers.Wait()
	h := &history{tasks: c.collect(), lines: lines, killed: f.killed}
	if err := errors.Join(server.Close(), release()); err != nil {
		t.Error(err)
	}
	figures, faults := h.check()
	for _, fault := range faults {
		t.Error(fault)
	}
	t.Logf("%v, in %v", figures, time.Since(begun).Round(time.Second))
}

// fleet is the workers, each a process.
type fleet struct {
	t      *testing.T
	config workerConfig
	kills  int // how many workers to kill

	disarm func() // is called after the last kill

	mu      sync.Mutex
	started int
	doomed  int // counts the processes that were chosen
	killed  map[string]time.Time
}

// keep keeps a worker running at a place until ctx ends, and kills one after the other until there are enough.
func (f *fleet) keep(ctx context.Context, place int) {
	for ctx.Err() == nil {
		f.mu.Lock()
		f.started++
		c := f.config
		c.Name = fmt.Sprintf("w%d.%d", place, f.started)
		f.mu.Unlock()
		if err := f.runWorker(ctx, c); err != nil {
			f.t.Errorf("%s: %v", c.Name, err)
			f.disarm()
			return
		}
	}
}

// runWorker runs a worker until it is killed, or ctx ends.
func (f *fleet) runWorker(ctx context.Context, c workerConfig) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0]) //nolint:gosec // the test itself
	cmd.Env = append(os.Environ(), asWorker+"="+string(text))
	cmd.Stderr = f.t.Output()
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer input.Close()
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	// Most are killed at work, and some while they start.
	if rand.IntN(10) > 0 {
		if said, err := bufio.NewReader(output).ReadString('\n'); said != "ready\n" {
			_ = cmd.Process.Kill() // it may have ended
			return fmt.Errorf("it does not start: %w, %w", err, cmd.Wait())
		}
	}
	_ = pause(ctx, time.Duration(100+rand.IntN(7000))*time.Millisecond)
	if ctx.Err() == nil && f.choose() {
		f.mu.Lock()
		f.killed[c.Name] = time.Now().Round(0)
		if len(f.killed) == f.kills {
			f.disarm()
		}
		f.mu.Unlock()
	} else {
		<-ctx.Done() // all is over
	}
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()         // says that it was killed
	return nil
}

// choose reports whether another process is to be killed.
func (f *fleet) choose() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doomed++
	return f.doomed <= f.kills
}

// awaitRuns waits until the runs of living processes have ended, and returns the journal.
func (f *fleet) awaitRuns() []line {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), settleWithin)
	defer cancel()
	for {
		lines := readJournal(f.t, f.config.Journal)
		open := map[string]bool{}
		for _, l := range lines {
			key := fmt.Sprint(l.Process, l.Task, l.Attempt)
			switch l.Moment {
			case momentStart:
				open[key] = f.killed[l.Process].IsZero()
			case momentEnd, momentCancelled:
				open[key] = false
			}
		}
		left := 0
		for _, is := range open {
			if is {
				left++
			}
		}
		if left == 0 || pause(ctx, 100*time.Millisecond) != nil {
			return lines // the check reports missing lines
		}
	}
}

// crowd is the clients.
type crowd struct {
	t      *testing.T
	server *taskserver.Server

	mu    sync.Mutex
	tasks map[string]*taskHistory
}

// observe notes the ends of tasks.
func (c *crowd) observe(r taskstore.Record) {
	e := endOf(r)
	if e == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.find(r.ID)
	if !slices.Contains(t.seen, *e) {
		t.seen = append(t.seen, *e)
	}
}

// find returns the history of a task. c.mu is held.
func (c *crowd) find(id string) *taskHistory {
	t := c.tasks[id]
	if t == nil {
		t = &taskHistory{id: id}
		c.tasks[id] = t
	}
	return t
}

// collect reads the tasks from the store once more.
func (c *crowd) collect() (all []*taskHistory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tasks {
		record, err := c.server.Backend().Get(c.t.Context(), caller, t.id)
		if err != nil {
			c.t.Errorf("task %s of %s is lost: %v", t.id, t.tool, err)
		}
		t.last = endOf(record)
		all = append(all, t)
	}
	return all
}

// submit submits one task after the other while there is harm, and follows each to its end.
func (c *crowd) submit(ctx, harm context.Context) {
	names := []string{toolWork, toolWork, toolWorkFail, toolAsk, toolAsk, toolAskFail, toolHold, toolHoldFail}
	for harm.Err() == nil {
		if err := c.runTask(ctx, names[rand.IntN(len(names))]); err != nil {
			c.t.Error(err)
			return
		}
	}
}

// runTask creates a task, answers its questions, cancels it perhaps, and waits for its end.
func (c *crowd) runTask(ctx context.Context, tool string) error {
	arguments := fmt.Appendf(nil, `{"ms":%d}`, 20+rand.IntN(1500))
	reply, err := c.server.Backend().Call(ctx, caller, tool, arguments, taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		return fmt.Errorf("call of %s: %w", tool, err)
	}
	id := reply.Task.ID
	c.server.Backend().Follow(id) // until the end of the test, so that a second end is seen
	c.mu.Lock()
	history := c.find(id)
	history.tool = tool
	c.mu.Unlock()

	var canceller sync.WaitGroup
	defer canceller.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if isHold := tool == toolHold || tool == toolHoldFail; isHold || rand.IntN(10) == 0 {
		canceller.Go(func() {
			if pause(ctx, time.Duration(rand.IntN(2000))*time.Millisecond) != nil {
				return
			}
			asked := time.Now().Round(0)
			_, done, err := c.server.Backend().Cancel(c.t.Context(), caller, id)
			c.mu.Lock()
			defer c.mu.Unlock()
			switch {
			case err != nil:
				c.t.Errorf("cancel of %s: %v", id, err)
			case !done:
				history.cancelled = asked
			}
		})
	}
	for version := int64(0); ; {
		record, err := c.server.Backend().Changed(ctx, caller, id, version)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil // the check says that it has not ended
		case err != nil:
			return fmt.Errorf("task %s of %s: %w", id, tool, err)
		case record.Done():
			return nil
		}
		version = record.Version
		for _, in := range record.Outstanding() {
			if pause(ctx, time.Duration(rand.IntN(1000))*time.Millisecond) != nil {
				break
			}
			answer := fmt.Appendf(nil, `{"action":"accept","content":{"word":"%x"}}`, rand.Uint64())
			if err := c.server.Backend().Answer(ctx, caller, id, map[string]json.RawMessage{in.Key: answer}); err != nil && ctx.Err() == nil {
				return fmt.Errorf("answer to task %s of %s: %w", id, tool, err)
			}
		}
	}
}
