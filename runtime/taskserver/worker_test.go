package taskserver

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func TestWorkerName(t *testing.T) {
	name := newWorkerName()
	if name == newWorkerName() || strings.ContainsAny(name, "/ ") || strings.Count(name, "@") != 2 {
		t.Errorf("the name is %q", name)
	}
	if got := DescribeWorker(name); !strings.HasSuffix(got, fmt.Sprint("pid ", os.Getpid())) || len(got) > taskstore.MaxMomentText {
		t.Errorf("%q is described as %q", name, got)
	}
	for worker, want := range map[string]string{
		"4711@web-2@Q7ZK": "web-2, pid 4711", "4711@web-2@Q7ZK/3": "web-2, pid 4711", "1@@Q7ZK": "pid 1", "temporal default": "temporal default",
		strings.Repeat("x", 50): strings.Repeat("x", 40), "": "",
	} {
		if got := DescribeWorker(worker); got != want {
			t.Errorf("%q is described as %q, want %q", worker, got, want)
		}
	}
}

func TestLastBeat(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := newServer(t, Options{})
		for _, c := range []struct {
			worker      string
			left, since time.Duration
			isLate      bool
		}{
			{"1@a@X", leaseFor, 0, false},
			{"1@a@X", leaseFor - 10*time.Second, 10 * time.Second, false},
			{"1@a@X", leaseFor - 16*time.Second, 16 * time.Second, true},
			{"1@a@X/2", time.Second, 9 * time.Second, false},
			{"temporal/default", engineLease - 10*time.Second, 10 * time.Second, false},
			{"temporal/default", engineLease - 10*time.Minute, 10 * time.Minute, true},
		} {
			at, isLate := b.LastBeat(taskstore.WorkerLease{Worker: c.worker, Until: b.Now().Add(c.left)})
			if since := b.Now().Sub(at); isLate != c.isLate || since != c.since {
				t.Errorf("%s, %v left: last beat %v ago, late %v", c.worker, c.left, since, isLate)
			}
		}
	})
}
