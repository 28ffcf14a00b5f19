package edgetest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestErrorDataIsNoJSON checks that a handler's error whose data is not JSON loses only that data,
// and does not end the session.
func TestErrorDataIsNoJSON(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		p := wiretest.NewPiped(t, mcptask.NewTool(mcptask.ToolSpec{Name: "broken", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(context.Context, *mcptask.Task, struct{}) (struct{}, error) {
				return struct{}{}, &mcptask.Error{Code: -32000, Message: "br\xffoken", Data: json.RawMessage(`{"a":`)}
			}))
		p.Initialize()
		for range 2 {
			if reply := p.Ask(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"broken"}}`); !strings.Contains(reply, `"code":-32000`) {
				t.Errorf("%s", reply)
			}
		}
	})
}
