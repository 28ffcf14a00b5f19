package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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
			var steps []taskstore.Step
			if kind == durable.Update {
				steps = []taskstore.Step{{Name: "a", Attempt: i}}
			}
			plan.Writes = append(plan.Writes, durable.Write{Kind: kind, Record: &written, Row: row, Steps: steps})
		}
		if _, _, err := s.Transact(t.Context(), durable.Keys{IDs: []string{r.ID}}, func(*durable.State) *durable.Plan { return plan }); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), r.ID)
		if isGone := errors.Is(err, taskstore.ErrNoRecord); isGone != (last == durable.Remove) || !isGone && got.Version != 3 {
			t.Errorf("after the last write, of kind %d: version %d, %v", last, got.Version, err)
		}
		steps, err := s.Steps(t.Context(), r.ID)
		if isGone := errors.Is(err, taskstore.ErrNoRecord); isGone != (last == durable.Remove) || !isGone && (len(steps) != 1 || steps[0].Attempt != 2) {
			t.Errorf("after the last write, of kind %d: steps %+v, %v", last, steps, err)
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

// TestStepsUseIndex checks that the cost of a task's steps does not grow with the number of tasks.
func TestStepsUseIndex(t *testing.T) {
	s := openStore(t, pgtest.Database(t), Options{})
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())                                                    //nolint:errcheck // it has only read
	if _, err := tx.Exec(t.Context(), "SET LOCAL enable_seqscan = off"); err != nil { // which is faster as long as the table is empty
		t.Fatal(err)
	}
	for sql, arg := range map[string]any{selectSteps: []byte("t"), selectStepHeads: []byte("t"), deleteSteps: []int64{1, 2}} {
		rows, err := tx.Query(t.Context(), "EXPLAIN "+s.schema.sql(sql), arg)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan := strings.Join(lines, "\n")
		if err != nil || !strings.Contains(plan, "step_pkey") || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s: %v\n%s", sql, err, plan)
		}
	}
}

// TestSettings checks that PostgreSQL compiles no statement under the lock of the writes, which would take seconds on a busy
// machine, and that a session which waits for the lock ends with its process.
func TestSettings(t *testing.T) {
	s := openStore(t, pgtest.Database(t), Options{})
	const has = "SELECT current_setting('jit'), coalesce(current_setting('client_connection_check_interval', true), '')"
	var jit, check, version string
	if err := s.transact(t.Context(), func(b *pgx.Batch) {
		b.Queue(has).QueryRow(func(r pgx.Row) error { return r.Scan(&jit, &check) })
		b.Queue("SELECT current_setting('server_version_num')").QueryRow(func(r pgx.Row) error { return r.Scan(&version) })
	}, func(*pgx.Batch) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if jit != "off" || version >= "140000" && check != "250ms" {
		t.Errorf("jit is %s, and the check of the client is every %s", jit, check)
	}
}

// TestDeadsTasksUseIndex checks that it takes no look at all tasks to know whether dead workers have some.
func TestDeadsTasksUseIndex(t *testing.T) {
	s := openStore(t, pgtest.Database(t), Options{})
	var lines []string
	if err := s.transact(t.Context(), func(b *pgx.Batch) {
		b.Queue("EXPLAIN "+s.schema.sql(readFree), [][]byte{[]byte("w")}, []int64{1}).Query(func(rows pgx.Rows) (err error) {
			lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
	}, func(*pgx.Batch) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if plan := strings.Join(lines, "\n"); !strings.Contains(plan, "Index Cond: ((worker >=") {
		t.Error(plan)
	}
}

// TestFailedUseIndex checks that it takes no look at all tasks to know which have failed lately.
func TestFailedUseIndex(t *testing.T) {
	s := openStore(t, pgtest.Database(t), Options{})
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())                                                    //nolint:errcheck // it has only read
	if _, err := tx.Exec(t.Context(), "SET LOCAL enable_seqscan = off"); err != nil { // which is faster as long as the table is empty
		t.Fatal(err)
	}
	late := taskstore.Filter{Failed: true, EndedFrom: time.UnixMicro(1)}
	where, _ := durable.JoinConditions(durable.ConditionsOf(late, taskstore.Position{}, "", ""))
	scan := "SELECT id FROM @schema@.task" + strings.ReplaceAll(where, "?", "$1::bigint") + durable.OrderOf(late) + " LIMIT 51"
	for _, sql := range []string{countFailed, scan} {
		rows, err := tx.Query(t.Context(), "EXPLAIN "+s.schema.sql(sql), int64(1))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if plan := strings.Join(lines, "\n"); err != nil || !strings.Contains(plan, "task_failed") || !strings.Contains(plan, "Index Cond: (terminal >=") {
			t.Errorf("%s: %v\n%s", sql, err, plan)
		}
	}
}

// TestUnreadableStep checks that a damaged step is an error of Steps, which has its name, and of nothing else.
func TestUnreadableStep(t *testing.T) {
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{})
	update := func(r taskstore.Record, steps ...taskstore.Step) taskstore.Record {
		t.Helper()
		r, err := s.Update(t.Context(), r, r, taskstore.Quota{}, steps...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := update(create(t, s, newTask("t", "a")), taskstore.Step{Name: "a"}, taskstore.Step{Name: "b"})
	query(t, dsn, `UPDATE mcptask.step SET body = '\x02'::bytea || substr(body, 2) WHERE name = 'b' RETURNING 1`)
	if steps, err := s.Steps(t.Context(), "t"); !errors.Is(err, taskstore.ErrUnreadable) || !strings.Contains(err.Error(), `step "b"`) {
		t.Errorf("%+v, %v", steps, err)
	}
	update(r, taskstore.Step{Name: "b"})
	if steps, err := s.Steps(t.Context(), "t"); err != nil || len(steps) != 2 {
		t.Errorf("after it was replaced: %+v, %v", steps, err)
	}
}

// TestWaitingUsesIndex checks that the cost of a list of waiting tasks does not grow with the number of tasks, whatever
// PostgreSQL knows about them.
func TestWaitingUsesIndex(t *testing.T) {
	s := openStore(t, pgtest.Database(t), Options{})
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), s.schema.sql(sql), args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("PREPARE waiting(bytea[], bytea, bigint) AS "+selectWaiting, pgx.QueryExecModeSimpleProtocol)
	check := func(when string) {
		t.Helper()
		exec("DISCARD PLANS")
		var b pgx.Batch
		b.Queue(forceWaiting)
		var lines []string
		b.Queue("EXPLAIN (ANALYZE, BUFFERS) EXECUTE waiting('{tool,other}', 'user3', 64)").Query(func(rows pgx.Rows) (err error) {
			lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		err := conn.SendBatch(t.Context(), &b).Close()
		plan := strings.Join(lines, "\n")
		pages := 0
		if len(lines) > 1 {
			for _, n := range regexp.MustCompile(`\d+`).FindAllString(lines[1], -1) { // such as Buffers: shared hit=3 read=1
				page, _ := strconv.Atoi(n)
				pages += page
			}
		}
		if err != nil || strings.Count(plan, " using task_waiting on task") != 5 || strings.Count(plan, " on task ") != 5 || strings.Contains(plan, "Sort") || pages > 1000 {
			t.Errorf("%s: %d pages, %v\n%s", when, pages, err, plan)
		}
	}
	check("an empty table")
	exec(fillWaiting, 10, 2, []byte{})
	exec("VACUUM ANALYZE @schema@.task")
	check("a small table")
	exec("TRUNCATE @schema@.task")
	exec(fillWaiting, 10_000, 100, []byte{})
	exec("UPDATE @schema@.task SET phase = 9")
	exec("VACUUM ANALYZE @schema@.task")
	check("nothing waits")
	exec("UPDATE @schema@.task SET phase = 0, account = CASE WHEN seq <= 5000 THEN 'user1' ELSE account END")
	check("with the statistics of before")
	exec("ANALYZE @schema@.task")
	check("with other statistics")
	var sort string
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('enable_sort')").Scan(&sort); err != nil || sort != "on" {
		t.Errorf("afterwards enable_sort is %q, %v", sort, err)
	}
}
