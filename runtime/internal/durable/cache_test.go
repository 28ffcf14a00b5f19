package durable

import (
	"encoding/json"
	"fmt"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestCacheNeedsCurrentParts checks that the cache fills a record only with parts that are those
// of its row.
func TestCacheNeedsCurrentParts(t *testing.T) {
	c := NewCache(1 << 20)
	r := record("a")
	r.Arguments, r.Inputs = json.RawMessage("{}"), []mcptask.Input{{Key: "k"}}
	c.Keep(1, 3, &r)
	fill := func(seq, asked int64, done bool) (mcptask.Record, bool) {
		got := record("a")
		if done {
			got.Outcome = &mcptask.Outcome{Kind: mcptask.OutcomeResult}
		}
		ok := c.Fill(seq, asked, &got)
		return got, ok
	}
	if got, ok := fill(1, 3, false); !ok || string(got.Arguments) != "{}" || len(got.Inputs) != 1 {
		t.Errorf("%+v, %v", got, ok)
	}
	for name, tc := range map[string]struct {
		seq, asked int64
		done       bool
	}{"another record of that ID": {2, 3, false}, "newer inputs": {1, 4, false}, "an outcome": {1, 3, true}} {
		if _, ok := fill(tc.seq, tc.asked, tc.done); ok {
			t.Errorf("%s: filled", name)
		}
	}
	other := record("b") // of a database that has given the number again
	if c.Fill(1, 3, &other) {
		t.Error("another record of that number: filled")
	}
	// Another process has asked; this one ends the task.
	ended := r
	ended.Outcome = &mcptask.Outcome{Kind: mcptask.OutcomeResult, Result: json.RawMessage("1")}
	c.Note([]Write{{Kind: Update, Record: &ended, Row: &Row{Seq: 1, Asked: 5}, Parts: Parts{Outcome: true}}})
	if _, ok := fill(1, 5, true); ok {
		t.Error("filled with the inputs before those of another process")
	}
	c.Keep(1, 5, &ended)
	c.Keep(1, 3, &r) // a slow reader
	if got, ok := fill(1, 5, true); !ok || string(got.Outcome.Result) != "1" {
		t.Errorf("%+v, %v", got, ok)
	}
	c.Note([]Write{{Kind: Bury, Record: &ended, Row: &Row{Seq: 1}}})
	if _, ok := fill(1, 5, true); ok || c.size != 0 {
		t.Errorf("a removed record stays: %d bytes", c.size)
	}
}

// TestCacheIsBounded checks that the bytes of the cache stay within their bound.
func TestCacheIsBounded(t *testing.T) {
	const most = 100_000
	c := NewCache(most)
	for i := range int64(1000) {
		r := record(fmt.Sprint(i))
		r.Arguments = make(json.RawMessage, 20*i)
		c.Keep(i, 0, &r)
		if c.size > most {
			t.Fatalf("%d bytes", c.size)
		}
	}
	if len(c.entries) == 0 || len(c.entries) != c.order.Len() {
		t.Errorf("%d entries, %d in order", len(c.entries), c.order.Len())
	}
}
