package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// each runs f so many times at once and waits for all.
func each(n int, f func(i int)) {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { f(i) })
	}
	running.Wait()
}

// pause waits a moment, so that what was started may have come to where it
// waits. Nothing depends on it but how much a test sees.
func (k *kit) pause() {
	const moment = 5 * time.Millisecond
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.ctx.Done():
	}
}

// delete removes a record that has to be there.
func (k *kit) delete(id string) {
	k.Helper()
	if err := k.s.Delete(k.ctx, k.get(id)); err != nil {
		k.Fatalf("delete %q: %v", id, err)
	}
}

func isQuota(err error) bool {
	return errors.As(err, new(*mcptask.QuotaError))
}

// isContext says whether an error is what an ended context brings.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
