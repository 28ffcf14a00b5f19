package wiretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Driven has the tool "driven". Its tasks do what the test tells them.
type Driven struct {
	mu    sync.Mutex
	tasks map[string]chan string
}

// Tell tells a task what to do: "done" and "fail" end it, "ask" asks, "answer" ends it with the
// last answer, and any other text becomes its status message. Tell returns when the task has taken
// the text.
func (d *Driven) Tell(task string, what ...string) {
	for _, text := range what {
		d.TaskChannel(task) <- text
	}
}

// StartTask starts a task and returns its ID. It returns when the handler runs and all changes so
// far are stored. Only the test causes later changes.
func (d *Driven) StartTask(p *Peer) (task string) {
	task = p.Create("driven", nil)
	d.Tell(task, "begun")
	p.UntilMessage(task, "begun")
	return task
}

// FloodChanges is how many changes Flood makes.
var FloodChanges = ScaleForRace(10_000, 4000)

// Flood changes a task's status message, in order, by more bytes than sockets buffer. Then it ends
// the task.
func (d *Driven) Flood(p *Peer, task string) {
	filler := strings.Repeat("x", 40_000_000/FloodChanges)
	for i := range FloodChanges {
		d.Tell(task, fmt.Sprintf("%06d %s", i, filler))
	}
	d.Tell(task, "done")
	p.Until(task, "completed")
}

// TaskChannel returns the channel on which a task gets its orders.
func (d *Driven) TaskChannel(task string) chan string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tasks == nil {
		d.tasks = map[string]chan string{}
	}
	if d.tasks[task] == nil {
		d.tasks[task] = make(chan string)
	}
	return d.tasks[task]
}

// ShortTTL is the TTL of the tool "short_driven".
const ShortTTL = 4 * time.Second

// Tools returns the tools "driven" and "short_driven".
func (d *Driven) Tools() mcptask.Tools {
	policy := mcptask.Policy{Task: mcptask.TaskOptional, Poll: 20 * time.Millisecond, TTL: time.Hour}
	short := policy
	short.TTL = ShortTTL
	spec := func(name string, policy mcptask.Policy) mcptask.ToolSpec {
		return mcptask.ToolSpec{Name: name, InputSchema: OpenObject, Policy: policy}
	}
	return mcptask.Tools{Service: "Driven", Impl: d, Tools: []mcptask.Tool{
		mcptask.NewTool(spec("driven", policy), d.run), mcptask.NewTool(spec("short_driven", short), d.run),
	}}
}

func (d *Driven) run(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
	var answer NoteInput
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case text := <-d.TaskChannel(task.ID()):
			switch text {
			case "done":
				return "done", nil
			case "fail":
				return "", mcptask.Errorf(4055, "failed as told")
			case "ask":
				var err error
				if answer, err = mcptask.Ask[NoteInput](ctx, task, NoteSpec, "note", "A note?"); err != nil && !errors.Is(err, mcptask.ErrDeclined) {
					return "", err
				}
			case "answer":
				return answer.Note, nil
			default:
				task.Message(ctx, text)
			}
		}
	}
}
