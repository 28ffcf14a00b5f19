package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// driven has the tool "driven", whose tasks do as the test says.
type driven struct {
	mu    sync.Mutex
	tasks map[string]chan string
}

// say makes a task do something: "done" and "fail" end it, "ask" asks, "answer" ends it
// with the last answer, anything else is its status message. It returns when the task
// has taken it.
func (d *driven) say(task string, what ...string) {
	for _, text := range what {
		d.of(task) <- text
	}
}

// begin starts a task and returns its ID once its handler runs and every change up
// to there is stored: what comes next is what the test makes it do.
func (d *driven) begin(p *peer) (task string) {
	task = p.create("driven", nil)
	d.say(task, "begun")
	p.untilMessage(task, "begun")
	return task
}

// changes is how many changes flood makes.
var changes = fewer(10_000, 4000)

// flood changes a task's status message, in order, by more in all than sockets
// buffer, and ends the task.
func (d *driven) flood(p *peer, task string) {
	filler := strings.Repeat("x", 40_000_000/changes)
	for i := range changes {
		d.say(task, fmt.Sprintf("%06d %s", i, filler))
	}
	d.say(task, "done")
	p.until(task, "completed")
}

func (d *driven) of(task string) chan string {
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

// shortTTL is that of the tool "short_driven".
const shortTTL = 4 * time.Second

func (d *driven) tools() mcptask.Tools {
	policy := mcptask.Policy{Task: mcptask.TaskOptional, Poll: 20 * time.Millisecond, TTL: time.Hour}
	short := policy
	short.TTL = shortTTL
	spec := func(name string, policy mcptask.Policy) mcptask.ToolSpec {
		return mcptask.ToolSpec{Name: name, InputSchema: openObject, Policy: policy}
	}
	return mcptask.Tools{Service: "Driven", Impl: d, Tools: []mcptask.Tool{
		mcptask.NewTool(spec("driven", policy), d.run), mcptask.NewTool(spec("short_driven", short), d.run),
	}}
}

func (d *driven) run(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
	var answer noteInput
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case text := <-d.of(task.ID()):
			switch text {
			case "done":
				return "done", nil
			case "fail":
				return "", mcptask.Errorf(-32055, "failed as told")
			case "ask":
				var err error
				if answer, err = mcptask.Ask[noteInput](ctx, task, noteSpec, "note", "A note?"); err != nil && !errors.Is(err, mcptask.ErrDeclined) {
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
