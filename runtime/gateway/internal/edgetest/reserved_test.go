package edgetest

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

type ownParams struct{ mcp.ParamsBase }

type ownResult struct{ mcp.ResultBase }

// TestReservedMethods checks that methods below tasks/ and notifications/tasks/ belong to the
// protocol. User handlers for them, which the SDK would call, are never reached.
func TestReservedMethods(t *testing.T) {
	rules.Covers(t, "E-89")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		own := []string{"tasks/mine", "tasks/get/more", "tasks/result", "tasks/update", "notifications/tasks/mine", "notifications/tasks"}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Wrap: func(handler http.Handler, sdk *mcp.Server) http.Handler {
			for _, method := range own {
				err := mcp.AddReceivingCustomMethod(sdk, method, func(context.Context, *mcp.ServerSession, *ownParams) (*ownResult, error) {
					t.Errorf("%s reached the user's handler", method)
					return &ownResult{}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			return handler
		}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			for _, method := range own {
				if r := p.Task(method, "x"); r.Error == nil {
					t.Errorf("%s in %s: %s", method, revision, r.Body)
				}
				if r := p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"taskId":"x"}}`, method), wiretest.WithHeader("Mcp-Method", method)); r.Status == http.StatusOK {
					t.Errorf("%s in %s as a notification: %s", method, revision, r.Body)
				}
			}
		}
	})
}
