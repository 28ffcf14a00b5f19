package push

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// stuck is a log that blocks until it is released.
type stuck struct {
	slog.Handler
	released chan struct{}
}

func (s stuck) Handle(ctx context.Context, r slog.Record) error {
	<-s.released
	return s.Handler.Handle(ctx, r)
}

// A logger that blocks does not hold up a session.
func TestLoggerBlocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log strings.Builder
		logger := stuck{slog.NewTextHandler(&log, nil), make(chan struct{})}
		server, err := taskserver.New(taskserver.Options{Logger: slog.New(logger)})
		if err != nil {
			t.Fatal(err)
		}
		s := newPeer(New(server.Backend(), legacy), "a", `{}`)
		for range 2 * mostLogs {
			s.Mailbox.Take(t.Context(), taskserver.Caller{}, RequestID{kindCancel, 1, "task", "key"}, Response{})
		}
		s.Connect(nil, "").Close()
		s.Close()
		close(logger.released)
		synctest.Wait()
		if !strings.Contains(log.String(), "not taken") {
			t.Error(log.String())
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

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
