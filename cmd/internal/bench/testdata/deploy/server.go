package deploy

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// NewHandler serves the tools of the package.
func NewHandler(tasks *taskserver.Server) http.Handler {
	sdk := mcp.NewServer(&mcp.Implementation{Name: "deploy", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	return gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
}
