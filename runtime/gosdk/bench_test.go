package gosdk_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// BenchmarkTasksGet polls a task beside a bare echo.
func BenchmarkTasksGet(b *testing.B) {
	b.Run(mcptask.Revision20260728, func(b *testing.B) {
		url := wiretest.ServeUnchecked(b, wiretest.Unlimited())
		id := wiretest.CreateModern(b, url)
		p := wiretest.NewPosts(url, wiretest.ModernHeaders("tasks/get", id), wiretest.ModernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id)))
		wiretest.Beside(b, p, 1, p.Echo(b))
	})
	b.Run(mcptask.Revision20251125, func(b *testing.B) {
		url := wiretest.ServeUnchecked(b, wiretest.Unlimited())
		headers := wiretest.LegacyHeaders(b, url)
		created := wiretest.Post(b, url, headers, wiretest.LegacyBody("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"},"task":{}`))
		var task struct {
			Task struct{ TaskID string } `json:"task"`
		}
		created.Result(b, &task)
		p := wiretest.NewPosts(url, headers, wiretest.LegacyBody("tasks/get", fmt.Sprintf(`"taskId":%q`, task.Task.TaskID)))
		wiretest.Beside(b, p, 1, p.Echo(b))
	})
}

// BenchmarkTasksList reads the first page of 100,000 tasks; its floor does so
// with 1,000.
func BenchmarkTasksList(b *testing.B) {
	list := func(tasks int) wiretest.Posts {
		store := taskstore.NewMemory()
		now := time.Now().Truncate(time.Microsecond)
		for i := range tasks {
			at := now.Add(time.Duration(i) * time.Microsecond)
			if _, err := store.Create(b.Context(), taskstore.Record{
				ID: fmt.Sprintf("%026d", i), Principal: "alice", Phase: taskstore.PhaseQueued, CreatedAt: at, UpdatedAt: at, ExpiresAt: at.Add(time.Hour),
				Claim: taskstore.Claim{Worker: "another"},
			}, taskstore.Quota{}); err != nil {
				b.Fatal(err)
			}
		}
		options := wiretest.Unlimited()
		options.Store, options.Principal = store, func(context.Context) (string, error) { return "alice", nil }
		url := wiretest.ServeUnchecked(b, options)
		return wiretest.NewPosts(url, wiretest.LegacyHeaders(b, url), wiretest.LegacyBody("tasks/list", ""))
	}
	wiretest.Beside(b, list(100_000), 1, list(1000))
}

type runInput struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
}

// BenchmarkCreateTask makes tasks. Its floor is a plain call of a tool of the bare SDK that takes the same arguments. The
// benchmark plain measures that call itself, beside a bare echo.
func BenchmarkCreateTask(b *testing.B) {
	bare := func(b *testing.B, stateless bool) string {
		sdk := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1.0.0"}, nil)
		mcp.AddTool(sdk, &mcp.Tool{Name: "run_pipeline"}, func(context.Context, *mcp.CallToolRequest, runInput) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
		})
		server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
		b.Cleanup(server.Close)
		return server.URL
	}
	modern := func(url string) wiretest.Posts {
		return wiretest.NewPosts(url, wiretest.ModernHeaders("tools/call", "run_pipeline"), wiretest.ModernBody("tools/call", wiretest.CreateParams))
	}
	legacy := func(b *testing.B, url, task string) wiretest.Posts {
		return wiretest.NewPosts(url, wiretest.LegacyHeaders(b, url), wiretest.LegacyBody("tools/call", wiretest.CreateParams+task))
	}
	b.Run(mcptask.Revision20260728, func(b *testing.B) {
		wiretest.Beside(b, modern(wiretest.ServeUnchecked(b, wiretest.Unlimited())), 1, modern(bare(b, true)))
	})
	b.Run(mcptask.Revision20251125, func(b *testing.B) {
		wiretest.Beside(b, legacy(b, wiretest.ServeUnchecked(b, wiretest.Unlimited()), `,"task":{}`), 1, legacy(b, bare(b, false), ""))
	})
	b.Run(mcptask.Revision20260728+"/plain", func(b *testing.B) {
		p := modern(bare(b, true))
		wiretest.Beside(b, p, 1, p.Echo(b))
	})
	b.Run(mcptask.Revision20251125+"/plain", func(b *testing.B) {
		p := legacy(b, bare(b, false), "")
		wiretest.Beside(b, p, 1, p.Echo(b))
	})
}

// BenchmarkTaskLife makes tasks that end at once, and gets their results, beside a bare echo of
// the call.
func BenchmarkTaskLife(b *testing.B) {
	b.Run(mcptask.Revision20260728, func(b *testing.B) {
		url := wiretest.ServeUnchecked(b, wiretest.Unlimited())
		create := wiretest.NewPosts(url, wiretest.ModernHeaders("tools/call", "run_pipeline"), wiretest.ModernBody("tools/call", wiretest.CreateParams))
		wiretest.Beside(b, wiretest.Life{Create: create, Result: wiretest.NewPosts(url, wiretest.ModernHeaders("tasks/get", "TASK"), wiretest.ModernBody("tasks/get", `"taskId":"TASK"`))}, 2, create.Echo(b))
	})
	b.Run(mcptask.Revision20251125, func(b *testing.B) {
		url := wiretest.ServeUnchecked(b, wiretest.Unlimited())
		create := wiretest.NewPosts(url, wiretest.LegacyHeaders(b, url), wiretest.LegacyBody("tools/call", wiretest.CreateParams+`,"task":{}`))
		wiretest.Beside(b, wiretest.Life{Create: create, Result: wiretest.NewPosts(url, create.Headers, wiretest.LegacyBody("tasks/result", `"taskId":"TASK"`))}, 2, create.Echo(b))
	})
}
