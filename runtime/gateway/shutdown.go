package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sync/atomic"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Shutdown stops a server in an order that loses no answer:
//
//  1. It closes tasks, as [taskserver.Server.Close] does. New calls of task tools are refused. The
//     contexts of handlers end, and handlers have Options.Drain to return. Requests that wait for a
//     task are answered, and subscriptions end.
//  2. It ends the streams that clients keep open, and shuts the HTTP server down. That waits until
//     calls of the SDK's own tools are answered, and closes the connections. A nil server means no
//     HTTP server.
//  3. It ends the sessions. A server on standard input and output sees the end of its input, and
//     returns.
//  4. It closes the others, such as an Options.Store, one after another. It skips nil pointers.
//
// If ctx ends first, Shutdown closes the HTTP server with its connections and returns the context's
// error with all others. It then leaves the others open, because handlers may use them until
// Options.Drain is over.
//
// A second call for the same tasks waits for the first, at most until its own context ends, and
// returns the same error. gosdk.Shutdown and mcpgo.Shutdown call this function.
func Shutdown(ctx context.Context, server *http.Server, tasks *taskserver.Server, others ...io.Closer) error {
	one := tasks.Backend().Attached(shutdownKey{}, func() any { return &shutdown{done: make(chan struct{})} }).(*shutdown)
	if one.begun.CompareAndSwap(false, true) {
		defer close(one.done)
		one.err = runShutdown(ctx, server, tasks, others)
		return one.err
	}
	select {
	case <-one.done:
		return one.err
	case <-ctx.Done():
		return fmt.Errorf("gateway: the server is still shutting down: %w", ctx.Err())
	}
}

type shutdownKey struct{}

// shutdown is the single shutdown of a server.
type shutdown struct {
	begun atomic.Bool
	done  chan struct{} // closed when err is set
	err   error
}

func runShutdown(ctx context.Context, server *http.Server, tasks *taskserver.Server, others []io.Closer) error {
	closed := make(chan error, 1)
	go func() {
		defer guard.Then(tasks.Backend().Logger(), "closing the server", func() {
			closed <- errors.New("gateway: the server did not close: see its log")
		})
		closed <- tasks.Close()
	}()
	var faults []error
	drained := false
	select {
	case err := <-closed:
		drained = true
		faults = append(faults, err)
	case <-ctx.Done():
		faults = append(faults, fmt.Errorf("gateway: handlers still run: %w", ctx.Err()))
	}
	StopStreams(tasks.Backend())
	if server != nil {
		if err := server.Shutdown(ctx); err != nil {
			faults = append(faults, fmt.Errorf("gateway: requests were cut off: %w", err), server.Close())
		}
	}
	StopSessions(tasks.Backend())
	if drained { // else handlers still use them
		for _, other := range others {
			if !isNil(other) {
				faults = append(faults, other.Close())
			}
		}
	}
	return errors.Join(faults...)
}

// isNil reports whether c is nil or a nil pointer, such as the *http.Server of a page that is not served.
func isNil(c io.Closer) bool {
	v := reflect.ValueOf(c)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
