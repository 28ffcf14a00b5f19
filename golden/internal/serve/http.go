package serve

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// HTTP serves services until the test ends and returns the URL. Close clients before that.
func HTTP(t *testing.T, services ...mcptask.Tools) string {
	t.Helper()
	tasks, err := taskserver.New(taskserver.Options{}, services...)
	if err != nil {
		t.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "golden", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	server := httptest.NewServer(wirecheck.Handler(t, handler))
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Errorf("close the server: %v", err)
		}
		server.CloseClientConnections() // streams that a client left open
		server.Close()
	})
	return server.URL
}
