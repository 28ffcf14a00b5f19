package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// What the tests share, and where it stands. Servers: serveWith here, with the
// tools of e2e_test.go, driven_test.go (tasks that do as the test says) and
// ask_test.go (tasks that ask). Literal clients of them: peer in wire_test.go over
// HTTP, its streams as a feed in ask_test.go; piped in piped_test.go over pipes in
// the process; pipes in stdio_test.go of a server that is a process. Servers for our
// clients: scripted in scripted_test.go, which says what a test has written down;
// board in client_watch_test.go, which tells of tasks; inquirer in
// receiver_peer_test.go, which asks for tasks. Who wishes us ill: hostile_test.go,
// cutter in hostile_cut_test.go. goroutines_test.go counts what is left.

// TestMain lets more tests wait at once than there are processors: they
// mostly wait for handlers and polling intervals.
func TestMain(m *testing.M) {
	switch os.Getenv(asServer) {
	case "":
	case "endless": // until nobody reads any more
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		_, _ = io.Copy(os.Stdout, &torrent{rest: os.Getenv(begins), more: os.Getenv(continues), read: new(atomic.Int64)})
		return
	default:
		if err := serveStdio(); err != nil {
			log.Fatal(err)
		}
		return
	}
	http.DefaultTransport.(*http.Transport).DialContext = wiretest.Dial
	debug.SetGCPercent(400) // most of the garbage is small
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		log.Fatal(err)
	}
	os.Exit(checked(m))
}

// checked runs the tests, and fails where a server that was a process of its
// own has sent what the schemas do not admit.
func checked(m *testing.M) int {
	folder, err := os.MkdirTemp("", "wire")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.Setenv(wireFaults, folder); err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		log.Printf("what a server on pipes sent is not what the protocol says:\n%s", text)
	}
	if err != nil || len(files) > 0 {
		return 1
	}
	return code
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
	// gateway is set to the server's, to see what it holds.
	gateway **gateway.Gateway
	// wrap stands around the handler, with the SDK's server that is behind it.
	wrap func(http.Handler, *mcp.Server) http.Handler
	// start starts the server another way than httptest's.
	start func(*httptest.Server)
	// fallback leaves the pipeline its fallback=tools.
	fallback bool
	// sdk gets the SDK's server.
	sdk func(*mcp.Server)
	// revision is one that the test is about: the candidate is spoken beside the
	// others then, on candidatePath, and gateway is that path's.
	revision string
}

// serve starts a server of the pipeline's tools.
func serve(t testing.TB, options mcptask.Options) (url string, tasks *mcptask.Server) {
	t.Helper()
	return serveWith(t, setup{options: options, panics: true})
}

// hurried lets tests poll faster than anybody should.
var hurried = mcptask.Limits{Polls: -1, Lists: -1}

// serveWith starts a server of the pipeline's tools and of extraTools. A panic
// in its log fails the test.
func serveWith(t testing.TB, s setup) (url string, tasks *mcptask.Server) {
	t.Helper()
	logs := &safeBuffer{}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.NewTextHandler(logs, nil))
	}
	if s.options.Limits == (mcptask.Limits{}) {
		s.options.Limits = hurried
	}
	pipelineTools := everyCITools()
	if !s.fallback {
		pipelineTools.Fallback = mcptask.FallbackNone
	}
	if s.revision == candidateRevision {
		s.options.Revisions = []string{legacyRevision, candidateRevision, modernRevision}
	}
	services := append(s.tools, pipelineTools, extraTools())
	for i := range services {
		if s.options.Revisions != nil && services[i].Capabilities != nil { // which is generated for the released ones
			services[i].Capabilities = mcptask.Declared()
		}
	}
	tasks, err := mcptask.NewServer(s.options, services...)
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
	if s.sdk != nil {
		s.sdk(sdk)
	}
	get := func(*http.Request) *mcp.Server { return sdk }
	handler := wirecheck.Handler(t, s.around(gosdk.NewHandler(tasks, get, s.http), sdk))
	if s.revision == candidateRevision {
		paths := http.NewServeMux()
		paths.Handle("/", handler)
		paths.Handle(candidatePath, wirecheck.RevisionHandler(t, candidateRevision,
			s.around(gosdk.NewRevisionHandler(tasks, candidateRevision, get, s.http), sdk)))
		handler = paths
	}
	url, end := s.listen(handler, log.New(logs, "", 0))
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		end()
		endSessions(sdk)
		if text := logs.String(); !s.panics && strings.Contains(text, "panic") {
			t.Errorf("the server has panicked:\n%s", text)
		}
	})
	return url, tasks
}

// endSessions ends the sessions that clients have left open.
func endSessions(sdk *mcp.Server) {
	for session := range sdk.Sessions() {
		_ = session.Close()
	}
}

// listen serves a handler in memory, unless the test starts the server itself.
func (s setup) listen(handler http.Handler, logs *log.Logger) (url string, end func()) {
	if s.start == nil {
		server := wiretest.NewServer(handler, logs)
		return server.URL, server.Close
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = logs
	s.start(server)
	return server.URL, func() {
		server.CloseClientConnections()
		server.Close()
	}
}

// everyCITools are the pipeline's tools as generated for every revision.
func everyCITools() mcptask.Tools {
	tools := pipeline.CITools(ci{})
	tools.Capabilities = mcptask.Declared()
	return tools
}

// around puts what the test asks for around a gateway.
func (s setup) around(handler http.Handler, sdk *mcp.Server) http.Handler {
	if s.gateway != nil {
		*s.gateway = handler.(*gateway.Gateway)
	}
	if s.bearer {
		handler = auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			info := &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}
			if token == "nobody" {
				info.UserID = ""
			}
			return info, nil
		}, nil)(handler)
	}
	if s.wrap != nil {
		handler = s.wrap(handler, sdk)
	}
	return handler
}

// safeBuffer is a buffer that several write to, such as a log to read afterwards.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is what was logged so far.
func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// until waits until a text has been logged n times, and returns the log: who tells of
// something may log it afterwards.
func (b *safeBuffer) until(t testing.TB, text string, n int) string {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if all := b.String(); strings.Count(all, text) >= n || time.Now().After(end) {
			return all
		}
	}
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
	graceful.Grace = time.Hour
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

// discardLogger is for what is logged by design.
func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }
