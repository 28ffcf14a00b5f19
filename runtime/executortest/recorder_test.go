package executortest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder is a testing.TB that keeps its failures to itself.
type recorder struct {
	testing.TB // nil: a method that is not below would panic
	ctx        context.Context

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// recordFailures tests one promise, in a bubble, and returns the failures.
func recordFailures(t *testing.T, name string, h Harness) []string {
	t.Helper()
	i := slices.IndexFunc(promises, func(p promise) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("there is no promise %q", name)
	}
	r := &recorder{ctx: t.Context()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		promises[i].runTest(r, h)
	}()
	<-ended
	return r.failures
}

func (r *recorder) fail(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, strings.TrimSpace(text))
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Context() context.Context     { return r.ctx }
func (r *recorder) Helper()                      {}
func (r *recorder) Name() string                 { return "recorder" }
func (r *recorder) Error(args ...any)            { r.fail(fmt.Sprintln(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.fail(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatal(args ...any)            { r.Error(args...); r.FailNow() }
func (r *recorder) Fatalf(f string, args ...any) { r.Errorf(f, args...); r.FailNow() }
func (r *recorder) FailNow()                     { r.fail("failed"); runtime.Goexit() }
func (r *recorder) Skip(args ...any)             { r.fail("skipped: " + fmt.Sprint(args...)); runtime.Goexit() }
