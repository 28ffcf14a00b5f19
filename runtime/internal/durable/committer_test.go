package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// shelf is the least Backend: maps. fail is asked before each commit.
type shelf struct {
	mu       sync.Mutex
	seq      int64
	records  map[string]taskstore.Record
	steps    map[string]map[string]taskstore.Step // by ID and name
	rows     map[string]*Row
	accounts map[string]taskstore.Usage
	batches  []int
	number   int64 // of the last transaction that has written
	reads    int   // how many transactions have read
	fail     func(plan *Plan) error
}

func newShelf() *shelf {
	return &shelf{records: map[string]taskstore.Record{}, steps: map[string]map[string]taskstore.Step{}, rows: map[string]*Row{}, accounts: map[string]taskstore.Usage{}}
}

func (s *shelf) Transact(ctx context.Context, keys Keys, decide func(*State) *Plan) (before, after Mark, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return before, after, err
	}
	s.reads++
	state := NewState()
	for _, key := range keys.Accounts {
		if u, ok := s.accounts[key]; ok {
			state.Accounts[key] = u
		}
	}
	for _, id := range keys.IDs {
		if row, ok := s.rows[id]; ok {
			copied := *row
			state.Rows[id] = &copied
		}
	}
	for id, r := range s.records {
		if slices.Contains(keys.Names, nameOf(&r)) {
			state.Names[nameOf(&r)] = id
		}
	}
	plan := decide(state)
	before = Mark{Number: s.number}
	after, err = s.carryOut(plan)
	return before, after, err
}

func (s *shelf) Apply(_ context.Context, last Mark, names []Name, plan *Plan) (after Mark, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last.Number != s.number {
		return after, ErrStale
	}
	for _, r := range s.records {
		if slices.Contains(names, nameOf(&r)) {
			return after, ErrStale
		}
	}
	for _, w := range plan.Writes {
		if w.Kind == Insert && s.rows[w.Record.ID] != nil {
			return after, errors.New("a record has the ID")
		}
	}
	return s.carryOut(plan)
}

// carryOut carries out a plan. The lock is held.
func (s *shelf) carryOut(plan *Plan) (Mark, error) {
	if s.fail != nil {
		if err := s.fail(plan); err != nil {
			return Mark{}, err
		}
	}
	s.batches = append(s.batches, len(plan.Writes))
	for _, w := range plan.Writes {
		switch w.Kind {
		case Insert:
			s.seq++
			w.Row.Seq = s.seq
			s.steps[w.Record.ID] = map[string]taskstore.Step{}
			fallthrough
		case Update:
			row := *w.Row
			s.records[w.Record.ID], s.rows[w.Record.ID] = copyRecord(w.Record), &row
			names := map[string]bool{}
			for _, step := range w.Steps {
				if names[step.Name] {
					return Mark{}, fmt.Errorf("a statement cannot write step %q twice", step.Name)
				}
				names[step.Name], s.steps[w.Record.ID][step.Name] = true, step
			}
		case Remove, Bury:
			delete(s.records, w.Record.ID)
			delete(s.steps, w.Record.ID)
			delete(s.rows, w.Record.ID)
		}
	}
	for _, a := range plan.Accounts {
		if s.accounts[a.Key] = a.Usage; a.Usage == (taskstore.Usage{}) {
			delete(s.accounts, a.Key)
		}
	}
	if len(plan.Writes) == 0 {
		return Mark{}, nil
	}
	s.number++
	return Mark{Number: s.number}, nil
}

func (s *shelf) Get(_ context.Context, id string) (taskstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.records[id]; ok {
		return copyRecord(&r), nil
	}
	return taskstore.Record{}, taskstore.ErrNoRecord
}

// newCommitter makes a Committer that is closed at the end of the test.
func newCommitter(t interface{ Cleanup(func()) }, s *shelf) *Committer {
	c := NewCommitter(s, nil)
	t.Cleanup(c.Close)
	return c
}

// runAll lets all writes wait, so that they become one transaction, and returns their errors.
func runAll(c *Committer, ops []*op) []error {
	for _, o := range ops {
		o.done = make(chan struct{})
	}
	c.commit(ops)
	errs := make([]error, len(ops))
	for i, o := range ops {
		errs[i] = o.err
	}
	return errs
}

// TestGroupsDecideAsMemory checks that groups of writes have the answers that the memory store gives
// one after the other, whatever is in them and in whatever order.
func TestGroupsDecideAsMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := t.Context()
		memory, s := taskstore.NewMemory(), newShelf()
		committers := []*Committer{newCommitter(t, s), newCommitter(t, s)} // of two processes
		start := time.Unix(1_000_000, 0).UTC()
		quota := taskstore.Quota{
			Account: taskstore.Usage{Stored: 5, Unfinished: 3, Bytes: 3000}, Anonymous: taskstore.Usage{Stored: 6, Unfinished: 4, Bytes: 4000},
			Server: taskstore.Usage{Stored: 9, Unfinished: 7, Bytes: 6000},
		}
		drawID := func() string { return fmt.Sprint("task", rapid.IntRange(0, 5).Draw(t, "task")) }
		drawText := func() string { return strings.Repeat("x", rapid.IntRange(0, 900).Draw(t, "bytes")) }
		for range rapid.IntRange(1, 12).Draw(t, "groups") {
			var ops []*op
			var want []error
			for range rapid.IntRange(1, 12).Draw(t, "ops") {
				id := drawID()
				from, err := memory.Get(ctx, id)
				if err != nil || rapid.IntRange(0, 3).Draw(t, "op") == 0 {
					principal := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "principal")
					r := taskstore.Record{
						ID: id, Version: 7, Principal: principal, Account: principal, Tool: "t", Phase: taskstore.PhaseQueued,
						Arguments: json.RawMessage(drawText()), IdempotencyKey: rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "key"), CreatedAt: start,
					}
					start = start.Add(time.Microsecond)
					_, err := memory.Create(ctx, r, quota)
					want = append(want, err)
					ops = append(ops, newInsert(r, quota))
					continue
				}
				if rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
					from.Version--
				}
				if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
					want = append(want, memory.Delete(ctx, from))
					ops = append(ops, &op{kind: rapid.SampledFrom([]WriteKind{Remove, Bury}).Draw(t, "kind"), record: from, counts: true})
					continue
				}
				to := from
				to.Principal = "another"
				switch rapid.IntRange(0, 2).Draw(t, "update") {
				case 0:
					to.StatusMessage = drawText()
				case 1:
					to.Inputs = append(slices.Clone(to.Inputs), taskstore.Input{Request: mcptask.Request{Key: drawText()}})
				case 2:
					to.Phase, to.Outcome = taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: json.RawMessage(drawText())}
				}
				var steps []taskstore.Step
				for i := range rapid.IntRange(0, 3).Draw(t, "steps") {
					steps = append(steps, taskstore.Step{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "step"), Value: json.RawMessage(drawText()), At: start, Attempt: i})
					to.StepBytes += int64(len(steps[i].Value))
				}
				_, err = memory.Update(ctx, from, to, quota, steps...)
				want = append(want, err)
				ops = append(ops, newUpdate(from, to, quota, steps))
			}
			got := runAll(rapid.SampledFrom(committers).Draw(t, "process"), ops)
			for i := range want {
				if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
					t.Fatalf("op %d of %d, %v: %v, but memory says %v", i, len(ops), ops[i].kind, got[i], want[i])
				}
			}
			tally := map[string]taskstore.Usage{}
			for id, r := range s.records {
				stored, err := memory.Get(ctx, id)
				if diff := cmp.Diff(stored, r); err != nil || diff != "" {
					t.Fatalf("%v: %s", err, diff)
				}
				steps, err := memory.Steps(ctx, id)
				got := slices.Collect(maps.Values(s.steps[id]))
				taskstore.SortSteps(got)
				if diff := cmp.Diff(steps, got); err != nil || diff != "" {
					t.Fatalf("%v: %s", err, diff)
				}
				if row := s.rows[id]; row.Version != r.Version || row.Bytes != r.Size() || row.Done != r.Done() || (row.Asked > 0) != (len(r.Inputs) > 0) {
					t.Fatalf("%+v of %+v", row, r)
				}
				for _, key := range accountsOf(&r) {
					u, more := tally[key], r.Usage()
					tally[key] = taskstore.Usage{Stored: u.Stored + 1, Unfinished: u.Unfinished + more.Unfinished, Bytes: u.Bytes + more.Bytes}
				}
			}
			if !maps.Equal(tally, s.accounts) {
				t.Fatalf("counted %v, want %v", s.accounts, tally)
			}
		}
	})
}

// record returns a small record.
func record(id string) taskstore.Record {
	return taskstore.Record{ID: id, Phase: taskstore.PhaseQueued, CreatedAt: time.Unix(1, 0)}
}

// TestFaultyWriteFailsAlone checks that the writes beside one that the database refuses succeed.
func TestFaultyWriteFailsAlone(t *testing.T) {
	s, refused := newShelf(), errors.New("refused")
	s.fail = func(plan *Plan) error {
		if slices.ContainsFunc(plan.Writes, func(w Write) bool { return w.Record.ID == "bad" }) {
			return refused
		}
		return nil
	}
	var ops []*op
	for _, id := range []string{"a", "bad", "b"} {
		ops = append(ops, newInsert(record(id), taskstore.Quota{}))
	}
	if errs := runAll(newCommitter(t, s), ops); errs[0] != nil || !errors.Is(errs[1], refused) || errs[2] != nil || len(s.records) != 2 {
		t.Errorf("%v, %d records", errs, len(s.records))
	}
}

// TestCommitInDoubtIsNotRepeated checks that writes that may have been carried out are not tried
// again, since their second answers would be wrong.
func TestCommitInDoubtIsNotRepeated(t *testing.T) {
	s, calls := newShelf(), 0
	s.fail = func(*Plan) error { calls++; return InDoubt(errors.New("connection lost")) }
	ops := []*op{newInsert(record("a"), taskstore.Quota{}), newInsert(record("b"), taskstore.Quota{})}
	if errs := runAll(newCommitter(t, s), ops); errs[0] == nil || errs[1] == nil || calls != 1 {
		t.Errorf("%v after %d commits", errs, calls)
	}
}

// TestPanicFailsWrite checks that a panic in a transaction is an error of its callers, and that
// the Committer goes on.
func TestPanicFailsWrite(t *testing.T) {
	s := newShelf()
	s.fail = func(*Plan) error { panic("a fault") }
	c := newCommitter(t, s)
	if _, err := c.Create(t.Context(), record("a"), taskstore.Quota{}); err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Error(err)
	}
	s.fail = nil
	if _, err := c.Create(t.Context(), record("a"), taskstore.Quota{}); err != nil {
		t.Error(err)
	}
	c.Close()
}

// TestWaitingWritesGoTogether checks that writes that come while a transaction runs share the next
// one, and that callers who leave take nobody's answer with them.
func TestWaitingWritesGoTogether(t *testing.T) {
	s := newShelf()
	entered, release := make(chan struct{}), make(chan struct{})
	first := true
	s.fail = func(*Plan) error {
		if first {
			first = false
			close(entered)
			<-release
		}
		return nil
	}
	c := newCommitter(t, s)
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := c.Create(leaving, record("left"), taskstore.Quota{}); left <- err }()
	<-entered
	const others = 20
	answers := make(chan error, others)
	for i := range others {
		go func() { _, err := c.Create(t.Context(), record(fmt.Sprint(i)), taskstore.Quota{}); answers <- err }()
	}
	for waiting := 0; waiting < others; { // each comes to wait, whatever it takes
		c.mu.Lock()
		waiting = len(c.waiting)
		c.mu.Unlock()
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	for range others {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	c.Close()
	if !slices.Equal(s.batches, []int{1, others}) {
		t.Errorf("batches of %v", s.batches)
	}
	if _, err := c.Create(t.Context(), record("late"), taskstore.Quota{}); !errors.Is(err, mcptask.ErrServerClosed) {
		t.Error(err)
	}
}

// TestBytesOfTransaction checks that a transaction takes as many ops as it may have bytes, and that steps count which an
// op stores, but not those that its task has.
func TestBytesOfTransaction(t *testing.T) {
	c := &Committer{}
	for i := range 6 {
		from := record(fmt.Sprint(i))
		from.StepBytes = 10 * mostBytes
		c.waiting = append(c.waiting, newUpdate(from, from, taskstore.Quota{}, []taskstore.Step{{Name: "a", Value: make(json.RawMessage, mostBytes/2)}}))
	}
	var sizes []int
	for {
		ops, _ := c.takeWaiting()
		if len(ops) == 0 {
			break
		}
		sizes = append(sizes, len(ops))
	}
	if !slices.Equal(sizes, []int{2, 2, 2}) {
		t.Errorf("transactions of %v", sizes)
	}
}

// TestKeyOfVanishedRecord checks that Create tries again if the record that has its key goes before it is
// read.
func TestKeyOfVanishedRecord(t *testing.T) {
	s := newShelf()
	c := newCommitter(t, s)
	named := record("former")
	named.IdempotencyKey = "k"
	former, err := c.Create(t.Context(), named, taskstore.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	named.ID = "next"
	if got, err := c.Create(t.Context(), named, taskstore.Quota{}); !errors.Is(err, taskstore.ErrExists) || got.ID != "former" {
		t.Errorf("%q, %v", got.ID, err)
	}
	once := true
	s.fail = func(plan *Plan) error {
		if once && len(plan.Writes) == 0 {
			once = false
			delete(s.records, former.ID)
			delete(s.rows, former.ID)
		}
		return nil
	}
	if got, err := c.Create(t.Context(), named, taskstore.Quota{}); err != nil || got.ID != "next" {
		t.Errorf("%q, %v", got.ID, err)
	}
}

// TestUnknownPhaseIsRefused checks that a record that has no stored form is refused before it
// reaches others' transaction.
func TestUnknownPhaseIsRefused(t *testing.T) {
	c := newCommitter(t, newShelf())
	r := record("a")
	r.Phase = "waiting"
	if _, err := c.Create(t.Context(), r, taskstore.Quota{}); err == nil || !strings.Contains(err.Error(), `"waiting"`) {
		t.Error(err)
	}
	r.Phase, r.Outcome = taskstore.PhaseDone, &taskstore.Outcome{Kind: "lost"}
	if _, err := c.Update(t.Context(), r, r, taskstore.Quota{}); err == nil || !strings.Contains(err.Error(), `"lost"`) {
		t.Error(err)
	}
}

// TestLoneProcessReadsOnce checks that a process reads only the rows that it does not know, and that it notices the
// writes of others.
func TestLoneProcessReadsOnce(t *testing.T) {
	s := newShelf()
	one, other := newCommitter(t, s), newCommitter(t, s)
	live := func(c *Committer, id string) {
		t.Helper()
		named := record(id)
		named.IdempotencyKey = id
		r, err := c.Create(t.Context(), named, taskstore.Quota{})
		if err != nil {
			t.Fatal(err)
		}
		to := r
		to.StatusMessage = "half"
		if r, err = c.Update(t.Context(), r, to, taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
		to = r
		to.Phase, to.Outcome = taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}
		if _, err = c.Update(t.Context(), r, to, taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
	}
	reads := func(want int) {
		t.Helper()
		if s.reads != want {
			t.Errorf("%d transactions have read, want %d", s.reads, want)
		}
		s.reads = 0
	}
	for i := range 10 {
		live(one, fmt.Sprint(i))
	}
	reads(1)
	live(other, "b")
	reads(1)
	live(one, "c") // finds out, and is careful once more
	reads(2)
	for i := range 10 {
		live(one, fmt.Sprint("d", i))
	}
	reads(0)
	if u := s.accounts[ServerAccount]; u.Stored != 22 || u.Unfinished != 0 {
		t.Errorf("%+v", u)
	}
	if _, err := one.Create(t.Context(), record("c"), taskstore.Quota{}); !errors.Is(err, taskstore.ErrExists) {
		t.Error(err)
	}
	reads(1)
}
