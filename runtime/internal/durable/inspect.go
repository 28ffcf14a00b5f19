package durable

import (
	"fmt"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Condition is a condition of a query, in which ? stands for each of its values.
type Condition struct {
	SQL    string
	Values []any
}

// ConditionsOf returns the conditions of a filter and a position on the columns of table task. contains is the SQL that
// tells whether the message has some bytes, and principal the SQL that compares the principal: databases differ in
// these.
func ConditionsOf(filter taskstore.Filter, after taskstore.Position, principal, contains string) []Condition {
	var all []Condition
	add := func(is bool, sql string, values ...any) {
		if is {
			all = append(all, Condition{sql, values})
		}
	}
	add(filter.Principal != "", principal, []byte(filter.Principal))
	add(filter.Tool != "", "tool = ?", []byte(filter.Tool))
	add(filter.Worker != "", "worker = ?", []byte(filter.Worker))
	add(filter.Workers != nil && len(filter.Workers) == 0, "1 = 0")
	addWorkers := func(sql string, workers []string) {
		var values []any
		for _, worker := range workers {
			values = append(values, []byte(worker))
		}
		add(len(workers) > 0, sql+" (?"+strings.Repeat(", ?", max(len(workers)-1, 0))+")", values...)
	}
	addWorkers("worker IN", filter.Workers)
	addWorkers("worker NOT IN", filter.NotWorkers)
	add(filter.Phase != "", "phase = ?", PhaseNumber(filter.Phase))
	queued, running := PhaseNumber(taskstore.PhaseQueued), PhaseNumber(taskstore.PhaseRunning)
	add(filter.Waiting, "(phase = ? OR phase = ? AND worker = ?)", queued, running, []byte{})
	// The index of unfinished tasks has this condition.
	add(filter.Unfinished || filter.Waiting || filter.Phase != "" && PhaseNumber(filter.Phase) < PhaseDone, "phase < 9")
	add(filter.Outcome != "", "outcome = ?", OutcomeKindNumber(filter.Outcome))
	add(filter.Failed, "("+Failed+")")
	if filter.IsError != nil {
		add(*filter.IsError, "outcome <> 0 AND is_error")
		add(!*filter.IsError, "outcome <> 0 AND NOT is_error")
	}
	add(filter.IDPrefix != "", "id >= ?", []byte(filter.IDPrefix))
	end := prefixEnd(filter.IDPrefix)
	add(end != nil, "id < ?", end)
	add(filter.Message != "", contains, []byte(filter.Message))
	add(!filter.CreatedFrom.IsZero(), "created >= ?", Micros(filter.CreatedFrom))
	add(!filter.CreatedUntil.IsZero(), "created <= ?", Micros(filter.CreatedUntil))
	add(!filter.EndedFrom.IsZero(), "outcome <> 0 AND terminal >= ?", Micros(filter.EndedFrom))
	if after != (taskstore.Position{}) {
		sql := "(" + createdOf(filter) + ", id) < (?, ?)"
		if filter.OldestFirst {
			sql = "(" + createdOf(filter) + ", id) > (?, ?)"
		}
		add(true, sql, Micros(after.CreatedAt), []byte(after.ID))
	}
	return all
}

// Failed is the condition of records that have failed, as the index task_failed has it.
const Failed = "outcome = 2 OR is_error"

// CountFailed returns the query of [taskstore.Inspector.CountFailed]. table and since are the SQL for the table and the
// time.
func CountFailed(table, since string) string {
	return fmt.Sprintf("SELECT tool, count(*) FROM (SELECT tool FROM %s WHERE (%s) AND terminal >= %s LIMIT %d) AS failed GROUP BY tool",
		table, Failed, since, taskstore.MaxCountFailed)
}

// createdOf returns the column of the creation. The plus keeps a database from walking all records in the order of their
// creation to find those that failed lately, for which there is an index.
func createdOf(filter taskstore.Filter) string {
	if filter.Failed && !filter.EndedFrom.IsZero() {
		return "+created"
	}
	return "created"
}

// prefixEnd returns the smallest text that is greater than all with a prefix, or nil if there is none.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return nil
	}
	end[len(end)-1]++
	return end
}

// OrderOf returns the ORDER BY of a filter.
func OrderOf(filter taskstore.Filter) string {
	if filter.OldestFirst {
		return " ORDER BY " + createdOf(filter) + ", id"
	}
	return " ORDER BY " + createdOf(filter) + " DESC, id DESC"
}

// JoinConditions returns the WHERE of conditions, and their values.
func JoinConditions(all []Condition) (where string, values []any) {
	var texts []string
	for _, c := range all {
		texts, values = append(texts, c.SQL), append(values, c.Values...)
	}
	if len(texts) > 0 {
		where = " WHERE " + strings.Join(texts, " AND ")
	}
	return where, values
}

// CountWorkers returns leases with the numbers of their unfinished records, which counts has by worker.
func CountWorkers(leases []taskstore.WorkerLease, counts map[string]int) []taskstore.WorkerLease {
	for i := range leases {
		leases[i].Unfinished = counts[leases[i].Worker]
		delete(counts, leases[i].Worker)
	}
	rest := taskstore.WorkerLease{}
	for _, n := range counts {
		rest.Unfinished += n
	}
	if rest.Unfinished > 0 {
		leases = append(leases, rest)
	}
	return leases
}
