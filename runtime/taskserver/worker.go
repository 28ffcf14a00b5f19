package taskserver

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// maxHost is how much of a host's name the name of a worker has, in bytes: a [taskstore.Moment] has to hold it.
	maxHost = 40
	// workerRandom is the length of the random end of a worker's name. It tells apart the workers of a process, and the
	// processes that have the same number one after the other.
	workerRandom = 12
)

// newWorkerName returns a name for a worker of this process, such as 4711@web-2@Q7ZK3M5TA2BC.
func newWorkerName() string {
	host, _ := os.Hostname() // without one, the number of the process has to do
	host = strings.Map(func(c rune) rune {
		if c < '!' || c > '~' || c == '@' || c == '/' { // a slash has a meaning, see taskstore.LastingLease
			return -1
		}
		return c
	}, host)
	return fmt.Sprintf("%d@%s@%s", os.Getpid(), host[:min(len(host), maxHost)], rand.Text()[:workerRandom])
}

// DescribeWorker returns the host and the process of a worker, such as "web-2, pid 4711", as the log and the timelines have
// them. It returns any other name, such as that of an engine, as it is, cut to 40 bytes.
func DescribeWorker(worker string) string {
	parts := strings.Split(worker, "@")
	if len(parts) != 3 {
		return strings.ToValidUTF8(worker[:min(len(worker), maxHost)], "")
	}
	if parts[1] == "" {
		return "pid " + parts[0]
	}
	return parts[1] + ", pid " + parts[0]
}

// LastBeat returns when a worker last renewed its lease, and whether its next beat is late: the worker may have died.
// Servers also take leases for lost tasks that they find. Nobody renews those, so they are never late.
func (b *Backend) LastBeat(w taskstore.WorkerLease) (at time.Time, isLate bool) {
	now, lease := b.Now(), b.lease
	if w.Until.Sub(now) > lease+b.renewEvery() {
		lease = engineLease
	} else if strings.Contains(w.Worker, "/") {
		return w.Until.Add(-b.claimFor()), false
	}
	at = w.Until.Add(-lease)
	return at, now.Sub(at) > b.renewEvery()*3/2
}
