package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// forceWaiting leaves PostgreSQL only one plan for selectWaiting, whatever it takes for cheap: no other index has the
	// order of task_waiting. It makes this plan once, because that takes longer than the query.
	forceWaiting = `SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_sort', 'off', true), set_config('jit', 'off', true)`
	// turnKey is the account @account@ as the index has it.
	turnKey = "(CASE WHEN length(@account@) <= 512 THEN @account@ ELSE substr(@account@, 1, 512) || sha256(@account@) END)"
	// nextWaiting is a query for the next task of tool x.tool that waits, under a condition. No condition may fix the key
	// with =, because PostgreSQL would then take the order of another index for that of the ORDER BY.
	nextWaiting = `(SELECT @key@ AS key, t.created, t.id, t.account, t.principal FROM @schema@.task t
		WHERE t.phase < 9 AND t.worker = '' AND t.tool = x.tool AND @condition@ ORDER BY @key@, t.created, t.id LIMIT 1)`
)

// selectWaiting walks the index, for each of the tools $1, from account to account, and finds the oldest task of each:
// first behind account $2, then before. From there it walks to the second of each account, and so on. PostgreSQL walks
// only as far as LIMIT $3 needs. So the cost does not depend on how many tasks wait.
var selectWaiting = func() string {
	next := func(condition string) string {
		return strings.NewReplacer("@condition@", strings.ReplaceAll(condition, "@key@", keyOf("t.account")), "@key@", keyOf("t.account")).Replace(nextWaiting)
	}
	after := keyOf("$2::bytea")
	return `SELECT x.tool, w.id, w.account, w.principal, w.created FROM unnest($1::bytea[]) x(tool) CROSS JOIN LATERAL (
		WITH RECURSIVE behind AS (
			` + next("@key@ > "+after) + `
			UNION ALL SELECT n.* FROM behind b CROSS JOIN LATERAL ` + next("@key@ > b.key") + ` n
		), before AS (
			` + next("@key@ <= "+after) + `
			UNION ALL SELECT n.* FROM before b CROSS JOIN LATERAL ` + next("@key@ > b.key AND @key@ <= "+after) + ` n
		), turn AS (
			(SELECT * FROM behind UNION ALL SELECT * FROM before LIMIT $3)
			UNION ALL SELECT n.* FROM turn b CROSS JOIN LATERAL ` + next("(@key@, t.created, t.id) > (b.key, b.created, b.id) AND @key@ <= b.key") + ` n
		)
		SELECT * FROM turn LIMIT $3
	) w`
}()

func keyOf(account string) string { return strings.ReplaceAll(turnKey, "@account@", account) }

// Waiting implements [taskstore.Store].
func (s *Store) Waiting(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
	if limit <= 0 || len(tools) == 0 {
		return nil, ctx.Err()
	}
	// A task that is among the first ones of all tools is among the first ones of its own.
	var waiting []taskstore.Waiting
	var b pgx.Batch // which is one transaction
	b.Queue(s.schema.sql(forceWaiting))
	tools = slices.Compact(slices.Sorted(slices.Values(tools)))
	b.Queue(s.schema.sql(selectWaiting), byteStrings(tools), []byte(after), limit).Query(func(rows pgx.Rows) error {
		var tool, id, account, principal []byte
		var created int64
		_, err := pgx.ForEachRow(rows, []any{&tool, &id, &account, &principal, &created}, func() error {
			waiting = append(waiting, taskstore.Waiting{
				ID: string(id), Account: string(account), Principal: string(principal), Tool: string(tool), CreatedAt: durable.Time(created),
			})
			return nil
		})
		return err
	})
	if err := s.pool.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("postgres: waiting: %w", err)
	}
	return taskstore.SortTurns(waiting, after, limit), nil
}
