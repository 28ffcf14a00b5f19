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
