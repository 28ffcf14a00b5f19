package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// TestMain lets more tests wait at once than there are processors: they
// mostly wait for handlers and polling intervals.
func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := serveStdio(); err != nil {
			log.Fatal(err)
		}
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// setup is what a test changes of the server that it runs against.
type setup struct {
	options mcptask.Options
	http    *mcp.StreamableHTTPOptions
	// middleware is the user's, added before ours as the documentation says.
	middleware mcp.Middleware
	// bearer asks for a token: its text is the user's ID, "nobody" has none.
	bearer bool
	// tools are served beside those of every test.
	tools []mcptask.Tools
	// panics says that a handler is made to panic.
	panics bool
	// fallback leaves the pipeline its fallback=tools.
	fallback bool
}

// serve starts a server of the pipeline's tools.
func serve(t testing.TB, options mcptask.Options) (url string, tasks *mcptask.Server) {
	t.Helper()
	return serveWith(t, setup{options: options, panics: true})
}

// serveWith starts a server of the pipeline's tools and of extraTools. A panic
// in its log fails the test.
func serveWith(t testing.TB, s setup) (url string, tasks *mcptask.Server) {
	t.Helper()
	logs := &logBuffer{}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.NewTextHandler(logs, nil))
	}
	pipelineTools := pipeline.CITools(ci{})
	if !s.fallback {
		pipelineTools.Fallback = mcptask.FallbackNone
	}
	tasks, err := mcptask.NewServer(s.options, append(s.tools, pipelineTools, extraTools())...)
	if err != nil {
		t.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	mcp.AddTool(sdk, &mcp.Tool{Name: "sdk_tool", Description: "is the SDK's own"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "from the SDK"}}}, nil, nil
		})
	if s.middleware != nil {
		sdk.AddReceivingMiddleware(s.middleware)
	}
	gosdk.AddTools(sdk, tasks)
	var handler http.Handler = gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, s.http)
	if s.bearer {
		handler = auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			info := &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}
			if token == "nobody" {
				info.UserID = ""
			}
			return info, nil
		}, nil)(handler)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(logs, "", 0)
	server.Start()
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
		if text := logs.String(); !s.panics && strings.Contains(text, "panic") {
			t.Errorf("the server has panicked:\n%s", text)
		}
	})
	return server.URL, tasks
}

// logBuffer is a log to read afterwards.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is what was logged so far.
func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

type ponderInput struct {
	MS       int  `json:"ms"`
	Stubborn bool `json:"stubborn"`
}

type noteInput struct {
	Note string `json:"note"`
}

const openObject = `{"type":"object"}`

// extraTools are what the pipeline's tools do not show.
func extraTools() mcptask.Tools {
	optional := mcptask.Policy{Task: mcptask.TaskOptional, Poll: 100 * time.Millisecond}
	immediate := optional
	immediate.Immediate = "The task is under way."
	graceful := optional
	graceful.Grace = 5 * time.Second
	note := mcptask.InputSpec{Name: "Note", Message: "A note?",
		Schema: `{"type":"object","properties":{"note":{"type":"string","maxLength":5}},"required":["note"]}`}
	return mcptask.Tools{Service: "Extra", Impl: struct{}{}, Tools: []mcptask.Tool{
		// ponder takes a while, with progress, and does not listen where it is stubborn.
		mcptask.NewTool(mcptask.ToolSpec{Name: "ponder", InputSchema: openObject, Policy: immediate}, ponder),
		mcptask.NewTool(mcptask.ToolSpec{Name: "ponder_at_once", InputSchema: openObject, Policy: graceful}, ponder),
		// raw has a result with everything that decoding and encoding could spoil.
		mcptask.NewTool(mcptask.ToolSpec{Name: "raw", InputSchema: openObject, Policy: optional},
			func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) {
				return &mcptask.Result{
					Content: []mcptask.Content{mcptask.TextContent("a < b && \u2028 \"c\""), mcptask.ImageContent([]byte{1, 2}, "image/png"),
						mcptask.Content(`{"type":"text","text":"t","_meta":{"n":9007199254740993}}`)},
					Structured: json.RawMessage(`{"big":9007199254740993,"one":1.0,"nested":{"null":null}}`),
					Meta:       map[string]json.RawMessage{"com.example/own": json.RawMessage(`{"n":9007199254740993}`)},
				}, nil
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "future", InputSchema: openObject, Policy: optional},
			func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) {
				return &mcptask.Result{Content: []mcptask.Content{mcptask.Content(`{"type":"scene","hologram":{"z":1.50}}`)}}, nil
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "locked", InputSchema: openObject, Policy: optional},
			func(context.Context, *mcptask.Task, struct{}) (string, error) {
				err := mcptask.Errorf(-32055, "the repository is locked")
				err.Data = json.RawMessage(`{"by":"somebody","since":[1,2]}`)
				return "", fmt.Errorf("wrapped: %w", err)
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "two_notes", InputSchema: openObject, Policy: optional},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				var notes [2]noteInput
				var errs [2]error
				var both sync.WaitGroup
				for i, step := range []string{"first", "second"} {
					both.Go(func() { notes[i], errs[i] = mcptask.Ask[noteInput](ctx, task, note, step, "") })
				}
				both.Wait()
				return notes[0].Note + " and " + notes[1].Note, errors.Join(errs[:]...)
			}),
	}}
}

func ponder(ctx context.Context, task *mcptask.Task, in ponderInput) (string, error) {
	const step = 20
	for past := 0; past < in.MS; past += step {
		task.Progress(ctx, float64(past+step), float64(in.MS), "pondering")
		select {
		case <-time.After(step * time.Millisecond):
		case <-ctx.Done():
			if !in.Stubborn {
				return "", ctx.Err()
			}
			time.Sleep(step * time.Millisecond)
		}
	}
	return "pondered", nil
}
