package push

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestLateAnswerLogsNoKey checks that the log has no ID of an anonymous caller's task, which is the key to it, even if an
// answer comes too late.
func TestLateAnswerLogsNoKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log strings.Builder
		server, err := taskserver.New(taskserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		const gone = "ATASKTHATHASEXPIREDMEANWHILE"
		s := newPeer(New(server.Backend(), legacy), "", `{}`)
		s.Take(t.Context(), taskserver.Caller{}, RequestID{task: gone, key: "step"}, Response{Result: []byte(`{}`)})
		synctest.Wait()
		if text := log.String(); !strings.Contains(text, "not taken") || strings.Contains(text, gone) {
			t.Errorf("log: %s", text)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}
