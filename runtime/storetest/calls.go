package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// runConcurrently calls f n times at once and waits for all calls.
func runConcurrently(n int, f func(i int)) {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { f(i) })
	}
	running.Wait()
}

// deleteRecord deletes a record that must exist.
func (k *kit) deleteRecord(id string) {
	k.Helper()
	if err := k.s.Delete(k.ctx, k.getRecord(id)); err != nil {
		k.Fatalf("delete %q: %v", id, err)
	}
}

func isQuota(err error) bool {
	return errors.As(err, new(*taskstore.QuotaError))
}

// isContext reports whether an error is that of an ended context.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
