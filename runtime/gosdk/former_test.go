package gosdk_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// renamedTools has the tool "transcode", which was "convert", one that must be a task, and one that repeats an argument in a
// header.
func renamedTools(fallback mcptask.Fallback) mcptask.Tools {
	type input struct {
		Region string `json:"region"`
	}
	handler := func(ctx context.Context, task *mcptask.Task, in input) (string, error) {
		task.Progress(ctx, 1, 2, "half")
		return "region " + in.Region, nil
	}
	spec := mcptask.ToolSpec{Name: "transcode", Was: []string{"convert"}, InputSchema: `{"type":"object","properties":{"region":{"type":"string"}}}`,
		Policy: mcptask.Policy{Task: mcptask.TaskOptional}}
	required := spec
	required.Name, required.Was, required.Policy.Task = "encode", []string{"compress"}, mcptask.TaskRequired
	marked := spec
	marked.Name, marked.Was, marked.InputSchema = "place", []string{"put"}, `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`
	return mcptask.Tools{Service: "Media", Impl: 1, Fallback: fallback, Capabilities: mcptask.Declared(),
		Tools: []mcptask.Tool{mcptask.NewTool(spec, handler), mcptask.NewTool(required, handler), mcptask.NewTool(marked, handler)}}
}

// TestFormerName calls a tool by a former name in every way, and one that does not exist.
func TestFormerName(t *testing.T) {
	in := map[string]string{"region": "x"}
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			requests := make(chan taskserver.RequestInfo, 100)
			options := taskserver.Options{Hooks: []taskserver.Hooks{{Request: func(ctx context.Context, info taskserver.RequestInfo) (context.Context, func(taskserver.RequestResult)) {
				requests <- info
				return ctx, nil
			}}}}
			eachServedWay(t, revision, options, renamedTools(mcptask.FallbackNone), func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
				ctx, conn := within(t, wiretest.Patience), connect(gosdk.ClientOptions{})
				for name, call := range map[string][]mcptask.CallOption{"a task": nil, "plain": {mcptask.Plain()}, "by key": {mcptask.IdempotencyKey("a key of 24 bytes or so..")}} {
					if text, err := mcptask.Run[string](ctx, conn, "convert", in, call...); err != nil || text != "region x" {
						t.Errorf("%s: %q, %v", name, text, err)
					}
				}
				for len(requests) > 0 {
					if info := <-requests; info.Tool == "convert" {
						t.Error("a hook sees the former name")
					}
				}
				started, err := mcptask.Start[string](ctx, conn, "compress", in)
				if err != nil {
					t.Fatal(err)
				}
				token, _ := started.Token()
				resumed, err := mcptask.Resume[string](conn, "encode", token.Renamed("encode", "other", "compress"))
				if err != nil {
					t.Fatal(err)
				}
				if text, err := resumed.Wait(ctx); err != nil || text != "region x" {
					t.Errorf("resumed: %q, %v", text, err)
				}
				tools, err := conn.ListTools(ctx)
				if err != nil || slices.ContainsFunc(tools, func(tool mcptask.ToolInfo) bool { return tool.Name == "convert" || tool.Name == "compress" }) {
					t.Errorf("%+v, %v", tools, err)
				}
				var refused *mcptask.Error
				for name, want := range map[string]string{
					"transcod":  `unknown tool "transcod"; the nearest is "transcode". If that is its new name, was=transcod in its declaration keeps the old one`,
					"something": `unknown tool "something"`,
				} {
					_, err := mcptask.Run[string](ctx, conn, name, in)
					if !errors.As(err, &refused) || refused.Code != mcptask.CodeInvalidParams || refused.Message != want {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		})
	}
}

// TestFormerNameOnTheWire checks that headers may name the former tool too, and must name the one of the body.
func TestFormerNameOnTheWire(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tasks, sdk := newServer(t, taskserver.Options{}, renamedTools(mcptask.FallbackTools))
		p := wiretest.NewPeer(t, serveHTTP(t, wiretest.LegacyRevision, tasks, sdk), wiretest.ModernRevision, "")
		call := map[string]any{"name": "put", "arguments": map[string]any{"region": "x"}}
		region := wiretest.WithHeader("Mcp-Param-Region", "x")
		old := wiretest.NewPeer(t, p.URL, wiretest.LegacyRevision, "")
		old.CallTool("convert", call["arguments"].(map[string]any)).WantText(false, "region x")
		if r := p.Call("tools/call", call, region); r.Error != nil {
			t.Errorf("%s", r.Body)
		}
		for name, edits := range map[string][]wiretest.Edit{
			"another tool":     {region, wiretest.WithHeader("Mcp-Name", "transcode")},
			"its name of now":  {region, wiretest.WithHeader("Mcp-Name", "place")},
			"another argument": {wiretest.WithHeader("Mcp-Param-Region", "y")},
		} {
			if r := p.Call("tools/call", call, edits...); r.Error == nil || r.Error.Code != wiretest.HeaderMismatch {
				t.Errorf("%s: %s", name, r.Body)
			}
		}
	})
}

// TestNearestIsVisible checks that the error for an unknown tool names no tool that middleware hides from the caller, and that
// it takes no second request through middleware which lets one pass at a time.
func TestNearestIsVisible(t *testing.T) {
	const unknown, hint = `unknown tool "transcod"`, `; the nearest is "transcode". If that is its new name, was=transcod in its declaration keeps the old one`
	hide := func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if listed, ok := result.(*mcp.ListToolsResult); ok {
				listed.Tools = slices.DeleteFunc(listed.Tools, func(tool *mcp.Tool) bool { return tool.Name == "transcode" })
			}
			return result, err
		}
	}
	slot := make(chan struct{}, 1)
	queue := func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "tools/call" && method != "tools/list" {
				return next(ctx, method, req)
			}
			select {
			case slot <- struct{}{}:
				defer func() { <-slot }()
			default:
				t.Errorf("%s within another request", method)
			}
			return next(ctx, method, req)
		}
	}
	for name, c := range map[string]struct {
		before, after mcp.Middleware
		want          string
	}{
		"hidden inside":  {hide, nil, unknown},
		"hidden outside": {nil, hide, unknown},
		"queued inside":  {queue, nil, unknown + hint},
		"queued outside": {nil, queue, unknown},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			tasks, err := taskserver.New(taskserver.Options{}, renamedTools(mcptask.FallbackTools))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tasks.Close() })
			sdk := mcp.NewServer(&mcp.Implementation{Name: "s"}, nil)
			if c.before != nil {
				sdk.AddReceivingMiddleware(c.before)
			}
			gosdk.AddTools(sdk, tasks)
			if c.after != nil {
				sdk.AddReceivingMiddleware(c.after)
			}
			slot = make(chan struct{}, 1)
			conn := dial(t, serveHTTP(t, wiretest.LegacyRevision, tasks, sdk), gosdk.ClientOptions{})
			_, err = mcptask.Run[string](within(t, time.Minute), conn, "transcod", struct{}{})
			var refused *mcptask.Error
			if !errors.As(err, &refused) || refused.Message != c.want {
				t.Error(err)
			}
		})
	}
}
