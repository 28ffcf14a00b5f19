package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestWritesOfOneTask checks that the writes of one task in one transaction are carried out in their order.
func TestWritesOfOneTask(t *testing.T) {
	s := openStore(t, pgtest.Database(t), Options{})
	for _, last := range []durable.WriteKind{durable.Update, durable.Remove} {
		r := newTask(fmt.Sprint("t", last), "a")
		row := &durable.Row{Mark: durable.EncodeMark(&r)}
		plan := &durable.Plan{}
		for i, kind := range []durable.WriteKind{durable.Insert, durable.Update, last} {
			written := r
			written.Version = int64(i) + 1
			plan.Writes = append(plan.Writes, durable.Write{Kind: kind, Record: &written, Row: row})
		}
		if _, _, err := s.Transact(t.Context(), durable.Keys{IDs: []string{r.ID}}, func(*durable.State) *durable.Plan { return plan }); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), r.ID)
		if isGone := errors.Is(err, taskstore.ErrNoRecord); isGone != (last == durable.Remove) || !isGone && got.Version != 3 {
			t.Errorf("after the last write, of kind %d: version %d, %v", last, got.Version, err)
		}
	}
}

// TestNumbersOfTasks checks that tasks of two processes never have the same number, although a process that
// writes without reading uses up the numbers that it has.
func TestNumbersOfTasks(t *testing.T) {
	dsn := pgtest.Database(t)
	one, other := openStore(t, dsn, Options{}), openStore(t, dsn, Options{})
	create(t, one, newTask("first", "a"))
	create(t, other, newTask("other", "a"))
	for i := range 3 { // then one writes without reading
		create(t, one, newTask(fmt.Sprint(i), "a"))
	}
	one.seqs = seqRange{next: one.seqs.next + one.seqs.left}
	create(t, one, newTask("last", "a"))
	if doubles := query(t, dsn, "SELECT seq FROM mcptask.task GROUP BY seq HAVING count(*) > 1"); len(doubles) > 0 {
		t.Errorf("several tasks have the numbers %v", doubles)
	}
}
