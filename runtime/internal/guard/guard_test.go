package guard

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"
)

func TestPanicStaysInside(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	told := ""
	func() {
		defer Then(logger, "the work", func() { told = "yes" })
		panic("boom")
	}()
	func() {
		defer Recover(logger, "other work")
		few := []int{1}
		few[len(told)+1]++
	}()
	for _, want := range []string{"the work panicked", "panic=boom", "other work panicked", "index out of range", "guard_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
	if told == "" {
		t.Error("the waiting caller was not told")
	}
}

func TestNothingToStop(t *testing.T) {
	var log bytes.Buffer
	func() {
		defer Recover(slog.New(slog.NewTextHandler(&log, nil)), "quiet work")
		defer Then(nil, "quiet work", func() { t.Error("it did not fail") })
	}()
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
}

// TestApart checks that Apart survives code that ends its goroutine, and code that panics, and tells both from a
// return.
func TestApart(t *testing.T) {
	for name, tc := range map[string]struct {
		f    func()
		want string
	}{
		"returns": {func() {}, ""},
		"exits":   {runtime.Goexit, "the work ended its goroutine"},
		"panics":  {func() { panic("boom") }, "the work panicked"},
	} {
		var log bytes.Buffer
		returned := Apart(slog.New(slog.NewTextHandler(&log, nil)), "the work", tc.f)
		if returned != (tc.want == "") || !strings.Contains(log.String(), tc.want) || tc.want == "" && log.Len() > 0 {
			t.Errorf("%s: returned %v, logged: %s", name, returned, &log)
		}
	}
}
