package taskstore

import (
	"cmp"
	"slices"
	"time"
)

// Waiting is a task that waits for a worker, see [Store.Waiting].
type Waiting struct {
	ID, Account, Principal, Tool string
	CreatedAt                    time.Time
}

// SortTurns sorts tasks as [Store.Waiting] returns them, and cuts the list at limit. Stores may use it. Of each account
// that is among the first limit ones, the list has the oldest tasks, up to limit.
func SortTurns(tasks []Waiting, after string, limit int) []Waiting {
	slices.SortFunc(tasks, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	turns := make(map[string]int, len(tasks)) // of the tasks, by ID
	for i, n := 0, 0; i < len(tasks); i++ {
		if n++; i == 0 || tasks[i].Account != tasks[i-1].Account {
			n = 0
		}
		turns[tasks[i].ID] = n
	}
	slices.SortStableFunc(tasks, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(turns[a.ID], turns[b.ID]), compareTurns(a.Account, b.Account, after))
	})
	return tasks[:min(len(tasks), max(limit, 0))]
}

// compareTurns compares accounts by who is next after an account: first those behind it, then the others.
func compareTurns(a, b, after string) int {
	if (a > after) != (b > after) {
		if a > after {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}
