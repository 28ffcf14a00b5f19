// This server renders films. It serves one client on standard input and output.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// scenes has the scenes of each film.
var scenes = map[string][]string{
	"short": {"title", "fox", "credits"},
	"long":  {"title", "fox", "hen", "rain", "chase", "barn", "dawn", "credits"},
}

// renderer renders scenes, each in the same time.
type renderer struct{ step time.Duration }

// render renders the scenes of a film, and reports each.
func (r renderer) render(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	film := req.GetString("film", "")
	all, ok := scenes[film]
	if !ok {
		return mcp.NewToolResultErrorf("there is no film %q", film), nil
	}
	for i, scene := range all {
		if meta := req.Params.Meta; meta != nil && meta.ProgressToken != nil {
			progress := map[string]any{"progressToken": meta.ProgressToken, "progress": i + 1, "total": len(all), "message": scene}
			if err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", progress); err != nil {
				return nil, err
			}
		}
		select {
		case <-time.After(r.step):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return mcp.NewToolResultText(fmt.Sprintf("Rendered %s: %d scenes.", film, len(all))), nil
}

// countScenes answers at once.
func countScenes(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	film, err := req.RequireString("film")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText(fmt.Sprint(len(scenes[film]))), nil
}

// newServer returns the server with its tools.
func newServer(step time.Duration) *server.MCPServer {
	s := server.NewMCPServer("films", "0.3.0", server.WithToolCapabilities(true), server.WithRecovery())
	film := mcp.WithString("film", mcp.Required(), mcp.Description("The name of a film: short or long"))
	s.AddTool(mcp.NewTool("count_scenes", mcp.WithDescription("Count the scenes of a film"), film), countScenes)
	s.AddTool(mcp.NewTool("render_film", mcp.WithDescription("Render a film. This takes minutes."), film), renderer{step}.render)
	return s
}

func main() {
	step := flag.Duration("step", time.Second, "how long the rendering of a scene takes")
	flag.Parse()
	if err := server.ServeStdio(newServer(*step)); err != nil {
		log.Fatal(err)
	}
}
