package chaos

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sessionKey signs the sessions of replicas.
const sessionKey = "0123456789abcdef0123456789abcdef"

// settleWithin bounds how long the tasks of a test may take to end after the last harm. It only has to exceed what
// a busy machine needs to read all of them.
const settleWithin = time.Minute

// TestKills kills a server with a file a few times.
func TestKills(t *testing.T) { killSQLite(t, 1, 5) }

// countKills returns how often a test kills: as the variable MCPTASK_KILLS says, or else a number for every day.
func countKills(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("MCPTASK_KILLS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("MCPTASK_KILLS is %q, and not a number of kills", text)
	}
	return n
}

// killSQLite kills servers that share a file, at random moments, under clients of both revisions.
func killSQLite(t *testing.T, replicas, kills int) {
	t.Helper()
	config := workerConfig{Store: "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")}
	if replicas > 1 {
		config.SessionKey = sessionKey
	}
	f := newFleet(t, config, replicas, 24)
	f.startAll()
	f.underLoad(func() {
		random := f.site.random()
		for range kills {
			// Most moments are those of a server at work, and some those of a server that starts.
			longest := 700
			if random.IntN(10) == 0 {
				longest = 80
			}
			time.Sleep(time.Duration(random.IntN(longest)) * time.Millisecond)
			signal := syscall.SIGKILL
			if random.IntN(3) == 0 {
				signal = syscall.SIGTERM
			}
			f.restart(random.IntN(replicas), signal)
		}
	})
	f.site.check(t, settleWithin)
}

// underLoad does harm while the clients work, and lets them work a little longer.
func (f *fleet) underLoad(harm func()) {
	f.t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithCancel(f.t.Context())
	var clients sync.WaitGroup
	clients.Go(func() { f.site.crowd.run(ctx) })
	harm()
	f.awaitAll()
	cancel()
	clients.Wait()
	f.t.Logf("%d tasks in %v", f.site.crowd.tasks.Load(), time.Since(begun).Round(time.Second))
}
