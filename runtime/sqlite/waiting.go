package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// nextWaiting begins a query for the next task of tool ?1 that waits. No other index may do, whatever SQLite takes
	// for cheap.
	nextWaiting = "SELECT n.seq FROM task n INDEXED BY task_waiting WHERE n.phase < 9 AND n.worker = x'' AND n.tool = ?1 AND "
	firstOfRest = " ORDER BY n.account, n.created, n.id LIMIT 1"
	// firstTool finds the first tool from ?1 on that has a task that waits.
	firstTool = "SELECT tool FROM task INDEXED BY task_waiting WHERE phase < 9 AND worker = x'' AND tool >= ?1 ORDER BY tool LIMIT 1"
	// selectWaiting walks the index from account to account, and finds the oldest task of each: first behind account ?2,
	// then before. From there it walks to the second of each account, and so on, until it has ?3 tasks or more. So its
	// cost does not depend on how many tasks wait. Each walk ends with a seq that is NULL, which the LIMIT counts.
	selectWaiting = `WITH RECURSIVE behind (seq) AS (
		SELECT (` + nextWaiting + `n.account > ?2` + firstOfRest + `)
		UNION ALL
		SELECT (` + nextWaiting + `n.account > t.account` + firstOfRest + `) FROM behind JOIN task t USING (seq) LIMIT +?3
	), before (seq) AS (
		SELECT (` + nextWaiting + `n.account <= ?2` + firstOfRest + `)
		UNION ALL
		SELECT (` + nextWaiting + `n.account > t.account AND n.account <= ?2` + firstOfRest + `) FROM before JOIN task t USING (seq) LIMIT +?3
	), turn (seq) AS (
		SELECT * FROM (SELECT seq FROM behind UNION ALL SELECT seq FROM before) WHERE seq IS NOT NULL
		UNION ALL
		SELECT (` + nextWaiting + `n.account = t.account AND (n.created, n.id) > (t.created, t.id)` + firstOfRest + `) FROM turn JOIN task t USING (seq) LIMIT 2 * ?3
	) SELECT task.id, account, principal, created FROM turn JOIN task USING (seq)`
)

// Waiting implements [taskstore.Store].
func (s *Store) Waiting(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	// A task that is among the first ones of all tools is among the first ones of its own.
	var waiting []taskstore.Waiting
	err := s.read(ctx, "read", func(r *session) error {
		first, isFirst := "", false
		for _, tool := range slices.Compact(slices.Sorted(slices.Values(tools))) {
			if !isFirst || first < tool {
				isFirst = false
				if err := r.queryContext(ctx, firstTool, func(rows *sql.Rows) error {
					isFirst = true
					return rows.Scan(&first)
				}, []byte(tool)); err != nil || !isFirst {
					return err
				}
			}
			if first != tool {
				continue
			}
			if err := r.queryContext(ctx, selectWaiting, func(rows *sql.Rows) error {
				w := taskstore.Waiting{Tool: tool}
				var created int64
				err := rows.Scan(&w.ID, &w.Account, &w.Principal, &created)
				w.CreatedAt = durable.Time(created)
				waiting = append(waiting, w)
				return err
			}, []byte(tool), []byte(after), limit); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return taskstore.SortTurns(waiting, after, limit), nil
}
