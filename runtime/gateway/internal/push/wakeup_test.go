package push

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// Streams and sessions come and go while a handler writes. Each open question stays on exactly one open stream, and the
// last status on each stream is the task's state.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(30) {
		bubble.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t)
			for range 20 {
				var busy sync.WaitGroup
				for range 4 {
					step := w.step(random)
					busy.Go(step)
				}
				busy.Wait()
				synctest.Wait()
				w.check(seed)
			}
		})
	}
}

// world is one task with many questions, and sessions that come and go.
type world struct {
	t      *testing.T
	store  taskstore.Store
	hub    *Hub
	caller taskserver.Caller

	mu       sync.Mutex
	sessions []*peer
	streams  []*reader
	record   taskstore.Record
}

// reader is a stream, with the messages that its client has received.
type reader struct {
	*Stream
	session *peer
	open    map[string]bool // questions, by request ID
	status  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store := taskstore.NewMemory()
	w := &world{t: t, store: store, hub: serve(t, store), caller: taskserver.Caller{Principal: "p"}}
	w.record = create(t, store, taskstore.Record{ID: "task", Phase: taskstore.PhaseRunning, Claim: taskstore.Claim{Worker: "w"}})
	for range 3 {
		w.open()
	}
	return w
}

func (w *world) open() {
	s := newPeer(w.hub, "p", elicits)
	s.Know(legacy, w.record)
	w.sessions = append(w.sessions, s)
}

func (w *world) connect(random *rand.Rand) {
	s := w.sessions[random.IntN(len(w.sessions))]
	task := ""
	if random.IntN(3) == 0 {
		task = "task"
	}
	w.streams = append(w.streams, &reader{s.Connect(nil, task), s, map[string]bool{}, ""})
}

// step chooses the next action at random, and returns it as a function.
func (w *world) step(random *rand.Rand) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	within := func(f func()) func() {
		return func() { w.mu.Lock(); defer w.mu.Unlock(); f() }
	}
	seeded := rand.New(rand.NewPCG(random.Uint64(), 2))
	switch n := random.IntN(10); {
	case n == 0 && len(w.sessions) > 1:
		i := random.IntN(len(w.sessions))
		s := w.sessions[i]
		w.sessions = slices.Delete(w.sessions, i, i+1)
		w.streams = slices.DeleteFunc(w.streams, func(r *reader) bool { return r.session == s })
		return s.Close
	case n == 1:
		return within(w.open)
	case n <= 4 && len(w.streams) > 0:
		i := random.IntN(len(w.streams))
		c := w.streams[i]
		w.streams = slices.Delete(w.streams, i, i+1)
		return c.Close
	case n <= 7:
		return within(func() { w.connect(seeded) })
	}
	return within(func() { w.write(seeded) })
}

// write changes the task as the handler does: it asks, takes a question back or gets an answer, and reports a status.
func (w *world) write(random *rand.Rand) {
	r := w.record
	r.Inputs = slices.Clone(r.Inputs)
	if open := r.Outstanding(); len(open) > 2 {
		i := slices.IndexFunc(r.Inputs, func(in taskstore.Input) bool { return in.State == taskstore.InputOutstanding })
		r.Inputs[i].State = []taskstore.InputState{taskstore.InputAnswered, taskstore.InputSuperseded}[random.IntN(2)]
	} else {
		r.Inputs = append(r.Inputs, newQuestion(fmt.Sprint(len(r.Inputs))))
	}
	r.StatusMessage = fmt.Sprint("message ", r.Version)
	r, err := w.store.Update(context.Background(), w.record, r, taskstore.Quota{})
	if err != nil {
		w.t.Error(err)
		return
	}
	w.record = r
	w.hub.observe(r)
}

// check compares what the clients know with the record.
func (w *world) check(seed uint64) {
	asked := map[string]int{}
	own := map[*peer]bool{} // sessions whose first own stream was checked
	for _, c := range w.streams {
		for _, data := range c.Take() {
			var m struct {
				ID, Method string
				Params     struct{ RequestID, StatusMessage string }
			}
			if err := json.Unmarshal(data, &m); err != nil {
				w.t.Fatal(err)
			}
			switch m.Method {
			case "elicitation/create":
				c.open[m.ID] = true
			case "notifications/cancelled":
				delete(c.open, m.Params.RequestID)
			default:
				c.status = m.Params.StatusMessage
			}
		}
		for id := range c.open {
			asked[id]++
		}
		if c.task == "" && !own[c.session] {
			own[c.session] = true
			if c.status != "" && c.status != w.record.StatusMessage {
				w.t.Errorf("seed %d: a stream has %q, the task %q", seed, c.status, w.record.StatusMessage)
			}
		}
	}
	for _, in := range w.record.Inputs {
		id := RequestID{task: "task", key: in.Key}.String()
		want := 0
		if in.State == taskstore.InputOutstanding && len(w.streams) > 0 {
			want = 1
		}
		if in.State == taskstore.InputOutstanding && asked[id] != want {
			w.t.Fatalf("seed %d: %s is on %d streams of %d", seed, id, asked[id], len(w.streams))
		}
	}
}

// A question goes to a session whose request waits for the task before it goes to another
// session's own stream (C-51), if that client answers such questions.
func TestWaitingStreamIsFirst(t *testing.T) {
	rules.Covers(t, "C-51", "C-53")
	for capabilities, first := range map[string]string{elicits: "the waiting stream", `{}`: "the own stream"} {
		bubble.Test(t, func(t *testing.T) {
			w := newWorld(t)
			waits := newPeer(w.hub, "p", capabilities)
			waits.Know(legacy, w.record)
			streams := map[string]*Stream{"the own stream": w.sessions[0].Connect(nil, ""), "the waiting stream": waits.Connect(nil, "task")}
			asked := func() (name string) {
				synctest.Wait()
				for stream, c := range streams {
					for _, m := range c.Take() {
						if strings.Contains(string(m), "elicitation/create") {
							name += stream
						}
					}
				}
				return name
			}
			w.write(rand.New(rand.NewPCG(1, 1)))
			if got := asked(); got != first {
				t.Errorf("asked on %q, want %s", got, first)
			}
			streams[first].Close()
			if got := asked(); first == "the waiting stream" && got != "the own stream" {
				t.Errorf("then asked on %q", got)
			}
		})
	}
}
