package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// deadWorkers walks the index from worker to worker, so that its cost is that of the workers and not
	// of their tasks. It passes over the tasks without a worker.
	deadWorkers = `WITH RECURSIVE busy (id) AS (
		SELECT (SELECT worker FROM task WHERE phase < 9 AND worker > x'' ORDER BY worker LIMIT 1)
		UNION ALL
		SELECT (SELECT worker FROM task WHERE phase < 9 AND worker > busy.id ORDER BY worker LIMIT 1) FROM busy WHERE busy.id IS NOT NULL
	) SELECT id FROM busy WHERE id IS NOT NULL AND id <> ?1 AND NOT EXISTS (SELECT 1 FROM worker WHERE worker.id = busy.id AND until > ?2)`
	selectOrphans = selectWhole + "WHERE phase < 9 AND worker = ? AND tool = ? AND seq > ? ORDER BY seq LIMIT +?"
	takeOrphan    = "UPDATE task SET version = version + 1, worker = ? WHERE seq = ?"
	extendLease   = "INSERT INTO worker VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET until = max(until, excluded.until)"
	setLease      = "INSERT INTO worker VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET until = excluded.until"
	endLease      = "DELETE FROM worker WHERE id = ?"
	// deleteWorkers need not look for tasks: a worker without a row has no lease.
	deleteWorkers = "DELETE FROM worker WHERE until <= ?"
	// selectHeld looks up each ID. CROSS JOIN and + keep SQLite from walking all tasks of the worker
	// for each of them.
	selectHeld = "SELECT task.id FROM json_each(?) AS held CROSS JOIN task ON task.id = unhex(held.value) " +
		"WHERE +task.worker = ? AND +task.phase < 9"
	hasWork = "SELECT count(*) FROM (SELECT 1 FROM task WHERE phase < 9 AND worker = ? LIMIT 1)"
)

// Lease implements [taskstore.Store].
func (s *Store) Lease(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
	if limit <= 0 || len(tools) == 0 {
		return nil, nil
	}
	tools = slices.Compact(slices.Sorted(slices.Values(tools)))
	// Most of the time there is nothing to take, and no need to hold up writers.
	var orphans []durable.Found
	if err := s.read(ctx, "read", func(r *session) (err error) {
		orphans, err = s.findOrphans(r, worker, tools, 1)
		return err
	}); err != nil || len(orphans) == 0 {
		return nil, err
	}
	var taken []taskstore.Record
	err := s.write(ctx, "write to", func(w *transaction) error {
		orphans, err := s.findOrphans(w.session, worker, tools, limit)
		if err != nil || len(orphans) == 0 {
			return err
		}
		if _, err := w.exec(extendLease, []byte(worker), durable.Micros(s.now().Add(lease))); err != nil {
			return err
		}
		var changes []taskstore.Change
		for i := range orphans {
			if _, err := w.exec(takeOrphan, []byte(worker), orphans[i].Seq); err != nil {
				return err
			}
			r := orphans[i].Record
			r.Claim.Worker = worker
			r.Version++
			taken = append(taken, r)
			changes = append(changes, r.Change())
		}
		_, err = w.record(changes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// findOrphans returns unfinished records of the tools whose workers have no lease. It passes over those
// that cannot be read: a newer process may be able to.
func (s *Store) findOrphans(r *session, worker string, tools []string, limit int) ([]durable.Found, error) {
	var dead []string
	if err := r.query(deadWorkers, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		dead = append(dead, id)
		return err
	}, []byte(worker), durable.Micros(s.past.Now())); err != nil {
		return nil, err
	}
	var orphans []durable.Found
	for _, id := range dead {
		for _, tool := range tools {
			var last int64
			for isEnd := false; !isEnd; {
				most := limit - len(orphans)
				found, err := queryFound(context.Background(), r, selectOrphans, []byte(id), []byte(tool), last, most)
				if err != nil {
					return nil, err
				}
				for i := range found {
					if last = found[i].Seq; found[i].Err != nil {
						s.sieve.Log(&found[i])
					} else {
						orphans = append(orphans, found[i])
					}
				}
				if len(orphans) == limit {
					return orphans, nil
				}
				isEnd = len(found) < most
			}
		}
	}
	return orphans, nil
}

// Beat implements [taskstore.Store].
func (s *Store) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	var beat taskstore.Heartbeat
	err := s.write(ctx, "write to", func(w *transaction) error {
		if s.lives.prove(worker, lease) {
			w.undo = func() { s.lives.leave(worker) }
		}
		beat.Now = s.now()
		if _, err := w.exec(setLease, []byte(worker), durable.Micros(beat.Now.Add(lease))); err != nil {
			return err
		}
		_, err := w.exec(deleteWorkers, durable.Micros(s.past.Now()))
		return err
	})
	if err != nil || len(held) == 0 {
		return beat, err
	}
	names := make([]string, len(held))
	for i, id := range held {
		names[i] = hex.EncodeToString([]byte(id))
	}
	list, err := json.Marshal(names)
	if err != nil {
		return beat, err
	}
	kept := make(map[string]bool, len(held))
	if err := s.read(ctx, "read", func(r *session) error {
		return r.query(selectHeld, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			kept[id] = true
			return err
		}, string(list), []byte(worker))
	}); err != nil {
		return beat, err
	}
	for _, id := range held {
		if !kept[id] {
			beat.Lost = append(beat.Lost, id)
		}
	}
	return beat, nil
}

// Release implements [taskstore.Store].
func (s *Store) Release(ctx context.Context, worker string) error {
	return s.write(ctx, "write to", func(w *transaction) error {
		if _, err := w.exec(endLease, []byte(worker)); err != nil {
			return err
		}
		if err := w.freeTasks(worker); err != nil {
			return err
		}
		s.lives.leave(worker)
		return nil
	})
}

// freeTasks tells the feed that the tasks of a worker without a lease are free, if there are any.
func (w *transaction) freeTasks(worker string) error {
	n, err := w.queryInt(hasWork, []byte(worker))
	if err == nil && n > 0 {
		_, err = w.record([]taskstore.Change{{Free: true}})
	}
	return err
}
