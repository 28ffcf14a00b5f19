package gosdk

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// An anonymous caller's ID is the key to its task. So no log contains it, not even if the server fails to cancel a task
// that it could not deliver.
func TestAbandonLogsNoKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log strings.Builder
		tasks, err := mcptask.NewServer(mcptask.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer tasks.Close()
		const gone = "ATASKTHATHASEXPIREDMEANWHILE"
		flow := &gateway.Flow{Handle: func(context.Context, json.RawMessage, mcptask.CallRequest) (mcptask.CallReply, error) {
			return mcptask.CallReply{Task: &mcptask.Record{ID: gone}}, nil
		}}
		if _, err := flow.Run(t.Context(), tasks, "", nil, gateway.Callbacks{}); err != nil {
			t.Fatal(err)
		}
		cancelAbandoned(t.Context(), tasks, flow)
		if text := log.String(); !strings.Contains(text, "not cancelled") || strings.Contains(text, gone) {
			t.Errorf("log: %s", text)
		}
	})
}
