package fallback

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// An anonymous caller's ID is the key to its task: no log has it, not of an answer
// that came too late either.
func TestLateAnswerLogsNoKey(t *testing.T) {
	var log strings.Builder
	server, err := mcptask.NewServer(mcptask.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const gone = "ATASKTHATHASEXPIREDMEANWHILE"
	ctx, stop := context.WithCancel(t.Context())
	a := &asking{
		server: server, task: gone, giveUp: stop,
		ask: func(context.Context, mcptask.Input) (json.RawMessage, error) { return json.RawMessage(`{}`), nil },
	}
	a.question(ctx, mcptask.Input{Key: "step"})
	if text := log.String(); ctx.Err() == nil || !strings.Contains(text, "answer not taken") || strings.Contains(text, gone) {
		t.Errorf("given up: %v, log: %s", ctx.Err(), text)
	}
}
