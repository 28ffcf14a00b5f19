// Package leak finds goroutines that a test has left behind. It is for tests only.
package leak

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Patience is how long goroutines that are ending may take to end.
const Patience = time.Minute

// Goroutines are the goroutines that run at a moment, by ID.
type Goroutines map[string]goroutine

type goroutine struct {
	kind  string // where it began, and who began it
	stack string
}

// Now lists the goroutines that run, but for the caller. It waits a moment for goroutines that are just beginning or
// ending: they would stand for others that are left behind later.
func Now() Goroutines {
	now := list()
	for settled, tries := 0, 0; settled < 3 && tries < 1000; tries++ {
		time.Sleep(100 * time.Microsecond) //nolint:forbidigo // only tests import this
		next := list()
		if settled++; !maps.EqualFunc(now, next, func(a, b goroutine) bool { return a.kind == b.kind }) {
			settled = 0
		}
		now = next
	}
	return now
}

// NoneLeft waits until no goroutine runs that did not run before, and fails with the stacks of those that do. A
// goroutine may take the place of another of its kind, such as that of a connection. Tests that run at the same time
// would be found.
func (before Goroutines) NoneLeft(t testing.TB) {
	t.Helper()
	before.AtMost(t, 0)
}

// AtMost is NoneLeft, but for a number of goroutines that go on for a reason.
func (before Goroutines) AtMost(t testing.TB, most int) {
	t.Helper()
	end := time.Now().Add(Patience)
	for {
		left := before.newIn(list())
		if len(left) <= most {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left, of at most %d:\n\n%s", len(left), most, strings.Join(group(left), "\n\n"))
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // only tests import this
	}
}

// newIn returns the goroutines of after beyond those of before, kind by kind.
func (before Goroutines) newIn(after Goroutines) (left []goroutine) {
	places := map[string]int{} // of goroutines that have ended
	for id, g := range before {
		if _, runs := after[id]; !runs {
			places[g.kind]++
		}
	}
	for id, g := range after {
		if _, ran := before[id]; ran {
			continue
		}
		if places[g.kind]--; places[g.kind] < 0 {
			left = append(left, g)
		}
	}
	return left
}

// group puts goroutines of one kind together.
func group(left []goroutine) (text []string) {
	kinds := map[string][]string{}
	for _, g := range left {
		kinds[g.kind] = append(kinds[g.kind], g.stack)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		text = append(text, fmt.Sprintf("%d × %s\n%s", len(kinds[kind]), kind, kinds[kind][0]))
	}
	return text
}

// list lists all goroutines but the one that calls.
func list() Goroutines {
	buffer := make([]byte, 1<<16)
	n := runtime.Stack(buffer, true)
	for n == len(buffer) {
		buffer = make([]byte, 2*n)
		n = runtime.Stack(buffer, true)
	}
	all := Goroutines{}
	for i, stack := range strings.Split(strings.TrimSpace(string(buffer[:n])), "\n\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		if i > 0 { // the first is the one that calls
			all[id] = goroutine{kindOf(stack), stack}
		}
	}
	return all
}

// kindOf is the outermost function of a stack, with the place that began it.
func kindOf(stack string) string {
	var began, by string
	for i, line := range strings.Split(stack, "\n") {
		if i == 0 || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "...") { // places, and frames left out
			continue
		}
		if text, ok := strings.CutPrefix(line, "created by "); ok {
			by, _, _ = strings.Cut(text, " in goroutine ")
			break
		}
		began = line
		if open := strings.LastIndexByte(began, '('); open > 0 {
			began = began[:open]
		}
	}
	return began + ", created by " + by
}
