package gosdk

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// An anonymous caller's ID is the key to its task. So no log contains it, not even if the server fails to cancel a task
// that it could not deliver.
func TestAbandonLogsNoKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log strings.Builder
		tasks, err := taskserver.New(taskserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer tasks.Close()
		const gone = "ATASKTHATHASEXPIREDMEANWHILE"
		flow := &gateway.Flow{Handle: func(context.Context, json.RawMessage, taskserver.CallRequest) (taskserver.CallReply, error) {
			return taskserver.CallReply{Task: &taskstore.Record{ID: gone}}, nil
		}}
		if _, err := flow.Run(t.Context(), tasks.Backend(), "", nil, nil); err != nil {
			t.Fatal(err)
		}
		cancelAbandoned(t.Context(), tasks.Backend(), flow)
		if text := log.String(); !strings.Contains(text, "not cancelled") || strings.Contains(text, gone) {
			t.Errorf("log: %s", text)
		}
	})
}
