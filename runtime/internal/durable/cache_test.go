package durable

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestCacheNeedsCurrentParts checks that the cache fills a record only with parts that are those
// of its row.
func TestCacheNeedsCurrentParts(t *testing.T) {
	c := NewCache(1 << 20)
	r := record("a")
	r.Arguments, r.Inputs = json.RawMessage("{}"), []taskstore.Input{{Request: mcptask.Request{Key: "k"}}}
	c.keep(1, 3, &r)
	fill := func(seq, asked int64, created time.Time) (taskstore.Record, bool) {
		found := Found{Seq: seq, Asked: asked, Record: record("a")}
		found.Record.CreatedAt = created
		ok := c.fill(&found)
		return found.Record, ok
	}
	if got, ok := fill(1, 3, r.CreatedAt); !ok || string(got.Arguments) != "{}" || len(got.Inputs) != 1 {
		t.Errorf("%+v, %v", got, ok)
	}
	for name, tc := range map[string]struct {
		seq, asked int64
		created    time.Time
	}{
		"another record of that ID": {2, 3, r.CreatedAt},
		"newer inputs":              {1, 4, r.CreatedAt},
		"another record, to which a restored database gave both": {1, 3, r.CreatedAt.Add(time.Second)},
	} {
		if _, ok := fill(tc.seq, tc.asked, tc.created); ok {
			t.Errorf("%s: filled", name)
		}
	}
	// Another process has asked; this one reports.
	c.Note([]Write{{Kind: Update, Record: &r, Row: &Row{Seq: 1, Asked: 5}}})
	if _, ok := fill(1, 5, r.CreatedAt); ok {
		t.Error("filled with the inputs before those of another process")
	}
	c.keep(1, 5, &r)
	older := r
	older.Inputs = nil
	c.keep(1, 3, &older) // by a slow reader
	if got, ok := fill(1, 5, r.CreatedAt); !ok || len(got.Inputs) != 1 {
		t.Errorf("%+v, %v", got, ok)
	}
	c.Note([]Write{{Kind: Bury, Record: &r, Row: &Row{Seq: 1}}})
	if tasks, bytes := c.Usage(); tasks != 0 || bytes != 0 {
		t.Errorf("a removed record stays: %d tasks, %d bytes", tasks, bytes)
	}
}

// TestCacheDropsEndedTasks checks that a task that has ended takes no memory, whichever process has ended it, and
// however often it is read.
func TestCacheDropsEndedTasks(t *testing.T) {
	c := NewCache(1 << 20)
	for i := range int64(30_000) {
		r := record(fmt.Sprint(i))
		c.Note([]Write{{Kind: Insert, Record: &r, Row: &Row{Seq: i}}})
		if tasks, _ := c.Usage(); tasks != 1 {
			t.Fatalf("task %d: %d tasks", i, tasks)
		}
		ended := r
		ended.Phase, ended.Outcome = taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeResult}
		if i%2 == 0 { // this process
			c.Note([]Write{{Kind: Update, Record: &ended, Row: &Row{Seq: i, Done: true}, Parts: Parts{Outcome: true}}})
		}
		for range 2 {
			found, err := c.Read(r.ID, func(whole bool) ([]Found, error) {
				read := ended
				if !whole {
					read.Arguments, read.Inputs = nil, nil
				}
				return []Found{{Seq: i, Record: read}}, nil
			})
			if err != nil || len(found) != 1 || !found[0].Record.Done() || string(found[0].Record.Arguments) != string(r.Arguments) {
				t.Fatalf("task %d: %+v, %v", i, found, err)
			}
		}
		if tasks, bytes := c.Usage(); tasks != 0 || bytes != 0 {
			t.Fatalf("task %d: %d tasks, %d bytes", i, tasks, bytes)
		}
	}
}

// TestCacheIsBounded checks that the bytes of the cache stay within their bound.
func TestCacheIsBounded(t *testing.T) {
	const most = 100_000
	c := NewCache(most)
	for i := range int64(1000) {
		r := record(fmt.Sprint(i))
		r.Arguments = make(json.RawMessage, 20*i)
		c.keep(i, 0, &r)
		if _, bytes := c.Usage(); bytes > most {
			t.Fatalf("%d bytes", bytes)
		}
	}
	if tasks, _ := c.Usage(); tasks == 0 || tasks != c.order.Len() {
		t.Errorf("%d tasks, %d in order", tasks, c.order.Len())
	}
}
