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

// Driven has the tool "driven", whose tasks do as the test says.
type Driven struct {
	mu    sync.Mutex
	tasks map[string]chan string
}

// Say makes a task do something: "done" and "fail" end it, "ask" asks, "answer" ends it
// with the last answer, anything else is its status message. It returns when the task
// has taken it.
func (d *Driven) Say(task string, what ...string) {
	for _, text := range what {
		d.Of(task) <- text
	}
}

// Begin starts a task and returns its ID once its handler runs and every change up
// to there is stored: what comes next is what the test makes it do.
func (d *Driven) Begin(p *Peer) (task string) {
	task = p.Create("driven", nil)
	d.Say(task, "begun")
	p.UntilMessage(task, "begun")
	return task
}

// Changes is how many changes flood makes.
var Changes = Fewer(10_000, 4000)

// Flood changes a task's status message, in order, by more in all than sockets
// buffer, and ends the task.
func (d *Driven) Flood(p *Peer, task string) {
	filler := strings.Repeat("x", 40_000_000/Changes)
	for i := range Changes {
		d.Say(task, fmt.Sprintf("%06d %s", i, filler))
	}
	d.Say(task, "done")
	p.Until(task, "completed")
}

func (d *Driven) Of(task string) chan string {
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

// ShortTTL is that of the tool "short_driven".
const ShortTTL = 4 * time.Second

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
		case text := <-d.Of(task.ID()):
			switch text {
			case "done":
				return "done", nil
			case "fail":
				return "", mcptask.Errorf(-32055, "failed as told")
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
