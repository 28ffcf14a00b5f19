package wiretest

import (
	"testing"
	"time"
)

// Await calls check until it returns "". If that takes longer than Patience, Await fails the test
// with what check returned last.
func Await(t testing.TB, check func() (missing string)) {
	t.Helper()
	for end := time.Now().Add(Patience); ; time.Sleep(10 * time.Millisecond) {
		switch missing := check(); {
		case missing == "":
			return
		case time.Now().After(end):
			t.Fatal(missing)
		}
	}
}

// Eventually is Await for a condition. what names it in the failure.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	Await(t, func() (missing string) {
		if done() {
			return ""
		}
		return "this does not become true: " + what
	})
}
