package taskserver

import (
	"sync"
	"time"
)

// endMinutes is the number of minutes for which a server counts the ends of tasks.
const endMinutes = 60

// endCounts counts the tasks that have ended, in each minute.
type endCounts struct {
	mu     sync.Mutex
	minute int64 // of the newest count, since 1970
	counts [endMinutes]int
}

// count counts a task that ends now.
func (e *endCounts) count(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(now)
	e.counts[e.minute%endMinutes]++
}

// advance sets the counts of the minutes that have begun since to 0. e.mu is held.
func (e *endCounts) advance(now time.Time) {
	minute := now.Unix() / 60
	for range min(minute-e.minute, endMinutes) {
		e.minute++
		e.counts[e.minute%endMinutes] = 0
	}
	e.minute = max(e.minute, minute)
}

// list returns the counts, the oldest first. The last is that of the minute that has not ended.
func (e *endCounts) list(now time.Time) []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(now)
	all := make([]int, 0, endMinutes)
	for i := range int64(endMinutes) {
		all = append(all, e.counts[(e.minute+1+i)%endMinutes])
	}
	return all
}
