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
	told := false
	func() {
		defer Then(logger, "the work", func() { told = true })
		panic("boom")
	}()
	func() {
		defer Recover(logger, "other work")
		var none map[string]int
		none["x"] = 1
	}()
	for _, want := range []string{"the work panicked", "panic=boom", "other work panicked", "assignment to entry in nil map", "guard_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
	if !told {
		t.Error("whoever waits was not told")
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
