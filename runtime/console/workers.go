package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// worker is a worker with its tasks. If it has no name, it stands for the tasks of no worker and of those without a lease.
type worker struct {
	taskstore.WorkerLease
	// Label has its host and process.
	Label    string
	LastBeat time.Time
	// IsLate says that its next beat has not come in time.
	IsLate bool
}

// workerList is a list of workers, for views that need not have the newest.
type workerList struct {
	mu   sync.Mutex
	read time.Time
	list []worker
}

// listWorkers returns the workers: those with the most tasks first, and that without a name last. The list may have the given age.
func (c *Console) listWorkers(ctx context.Context, age time.Duration) ([]worker, error) {
	c.workers.mu.Lock()
	defer c.workers.mu.Unlock()
	if time.Since(c.workers.read) < age {
		return c.workers.list, nil
	}
	leases, err := c.inspector.Workers(ctx)
	if err != nil {
		return nil, err
	}
	var list []worker
	for _, lease := range leases {
		// A server that looks for the tasks of lost workers has a lease for those that it finds, under its name and a
		// number.
		if lease.Unfinished == 0 && strings.Contains(lease.Worker, "/") {
			continue
		}
		w := worker{WorkerLease: lease, Label: taskserver.DescribeWorker(lease.Worker)}
		if lease.Worker != "" {
			w.LastBeat, w.IsLate = c.server.Backend().LastBeat(lease)
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b worker) int {
		if (a.Worker == "") != (b.Worker == "") {
			return -cmp.Compare(a.Worker, b.Worker) // that without a name comes last
		}
		return cmp.Or(cmp.Compare(b.Unfinished, a.Unfinished), cmp.Compare(a.Worker, b.Worker))
	})
	c.workers.list, c.workers.read = list, time.Now()
	return list, nil
}

// findWorkers returns the workers for a view of tasks. It reads them anew if they lack one that runs a task of these: the
// worker may be lost, or younger than the list.
func (c *Console) findWorkers(ctx context.Context, tasks ...taskstore.Record) ([]worker, error) {
	workers, err := c.listWorkers(ctx, refreshEvery)
	if err == nil && slices.ContainsFunc(tasks, func(r taskstore.Record) bool { return isLost(r.Phase, r.Claim.Worker, workers) }) {
		return c.listWorkers(ctx, 0)
	}
	return workers, err
}

// danger says that the worker of a task is late or lost. The zero value says that it is well, or that there is none.
type danger struct {
	Worker   string // with host and process
	LastBeat time.Time
	IsLost   bool
	// Next says what will happen to the task.
	Next string
}

// isLost reports whether a worker that has no lease any more has a task in this phase. No worker is "".
func isLost(phase taskstore.Phase, name string, workers []worker) bool {
	isRun := phase == taskstore.PhaseRunning || phase == taskstore.PhaseInputRequired
	return isRun && name != "" && !slices.ContainsFunc(workers, func(w worker) bool { return w.Worker == name })
}

// addWorkers adds to the filter of a state the workers that have its tasks.
func addWorkers(f *taskstore.Filter, state string, workers []worker) {
	leased := []string{}
	for _, w := range workers {
		if w.Worker != "" {
			leased = append(leased, w.Worker)
		}
	}
	switch state {
	case stateRunning:
		f.Workers = leased
	case stateAsking:
		f.Workers = append(leased, "") // the question of a task in line stays open
	case stateLost:
		f.NotWorkers = append(leased, "")
	}
}

// findDanger tells whether the worker of a task is late or lost. It is well if the store does not tell.
func (c *Console) findDanger(ctx context.Context, r *taskstore.Record) danger {
	if r.Done() || r.Phase == taskstore.PhaseQueued || r.Claim.Worker == "" {
		return danger{}
	}
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	workers, err := c.findWorkers(ctx, *r)
	if err != nil {
		return danger{}
	}
	d := danger{Worker: taskserver.DescribeWorker(r.Claim.Worker), IsLost: isLost(r.Phase, r.Claim.Worker, workers), Next: c.describeNext(r)}
	if d.IsLost {
		return d
	}
	for _, w := range workers {
		if w.Worker == r.Claim.Worker && w.IsLate {
			d.LastBeat = w.LastBeat
			return d
		}
	}
	return danger{}
}

// describeNext says what happens to a task when its worker is lost.
func (c *Console) describeNext(r *taskstore.Record) string {
	tool, _ := c.server.Backend().Tool(r.Tool)
	most := r.Attempt + tool.Policy.Attempts - r.Tries // a run that a closing server has handed over is no attempt
	switch c.server.Backend().DecideAfterLoss(*r) {
	case taskserver.LostCancelled:
		return "it ends as cancelled"
	case taskserver.LostForGood:
		return "it ends as failed, since its tool does not restart"
	case taskserver.LostTooOften:
		return fmt.Sprintf("it ends as failed: that was run %d of at most %d", r.Attempt, most)
	case taskserver.LostRunsAgain:
		return fmt.Sprintf("another worker starts it again, as run %d of at most %d", r.Attempt+1, most)
	}
	return "a server that has the tool decides what happens to it"
}
