package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// runConcurrently calls f n times at once and waits for all calls.
func runConcurrently(n int, f func(i int)) {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { f(i) })
	}
	running.Wait()
}

// pause waits a moment, so that other calls probably start to wait. The tests pass without it, but
// may see less.
func (k *kit) pause() {
	const moment = 5 * time.Millisecond
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.ctx.Done():
	}
}

// deleteRecord deletes a record that must exist.
func (k *kit) deleteRecord(id string) {
	k.Helper()
	if err := k.s.Delete(k.ctx, k.getRecord(id)); err != nil {
		k.Fatalf("delete %q: %v", id, err)
	}
}

func isQuota(err error) bool {
	return errors.As(err, new(*mcptask.QuotaError))
}

// isContext reports whether an error is that of an ended context.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
