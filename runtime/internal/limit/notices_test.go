package limit

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestNotices checks that a flood writes one line a second for each message, with long values cut.
func TestNotices(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var n Notices
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		long := strings.Repeat("ä", 1<<20)
		for range 10 {
			for range 1000 {
				n.Log(logger.Info, "refused", "error", errors.New(long), "id", long, "n", 5)
				n.Log(logger.Warn, "dropped")
			}
			time.Sleep(time.Second)
		}
		text := log.String()
		if count := strings.Count(text, "msg=refused"); count != 10 || strings.Count(text, "msg=dropped") != 10 {
			t.Errorf("%d lines", count)
		}
		if strings.Count(text, "omitted=999") != 18 || len(text) > 20*1000 || !strings.Contains(text, "level=WARN") {
			t.Errorf("%d bytes: %.2000s", len(text), text)
		}
	})
}
