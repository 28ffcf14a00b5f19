package guard

import (
	"bytes"
	"log/slog"
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
