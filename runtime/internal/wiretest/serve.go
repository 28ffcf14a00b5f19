package wiretest

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
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// Main runs more tests at once than there are processors, because tests mostly wait for handlers
// and polls. Without -v it leaves the warnings of servers out.
func Main(m *testing.M) {
	switch os.Getenv(EnvServer) {
	case "":
	case "endless": // until the reader has gone
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		_, _ = io.Copy(os.Stdout, &Torrent{Rest: os.Getenv(EnvTorrentBegin), More: os.Getenv(EnvTorrentRest), Taken: new(atomic.Int64)})
		return
	case "prints":
		if err := servePrinting(); err != nil {
			log.Fatal(err)
		}
		return
	case "echo":
		fmt.Println("from a child")
		return
	default:
		if err := serveStdio(); err != nil {
			log.Fatal(err)
		}
		return
	}
	http.DefaultTransport.(*http.Transport).DialContext = memnet.Dial
	debug.SetGCPercent(400) // most of the garbage is small
	flag.Parse()
	if !testing.Verbose() {
		slog.SetDefault(slog.New(slog.DiscardHandler)) // warnings would bury the name of a test that fails
	}
	if err := flag.Set("test.parallel", "8"); err != nil {
		log.Fatal(err)
	}
	os.Exit(runChecked(m))
}

// runChecked runs the tests. It fails if a server in its own process has sent what the schemas do
// not allow.
func runChecked(m *testing.M) int {
	directory, err := os.MkdirTemp("", "wire")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(directory) }()
	if err := os.Setenv(wireFaults, directory); err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	files, err := filepath.Glob(filepath.Join(directory, "*"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		log.Printf("a server on pipes has broken the protocol:\n%s", text)
	}
	if err != nil || len(files) > 0 {
		return 1
	}
	return code
}

// Setup is how a test changes its server.
type Setup struct {
	Options taskserver.Options
	HTTP    *mcp.StreamableHTTPOptions
	// Middleware is the user's middleware. It is added before ours, as the documentation recommends.
	Middleware mcp.Middleware
	// Bearer requires a token. The token is the user's ID. The token "nobody" has no user.
	Bearer bool
	// Tools are served beside those of every test.
	Tools []mcptask.Tools
	// Panics allows handlers to panic.
	Panics bool
	// Gateway is set to the server's gateway, so that the test can inspect it.
	Gateway **gateway.Gateway
	// Wrap wraps the handler. It also gets the SDK's server behind the handler.
	Wrap func(http.Handler, *mcp.Server) http.Handler
	// Start starts the server with a function of the test's own.
	Start func(*httptest.Server)
	// Fallback keeps the pipeline's fallback=tools.
	Fallback bool
	// NewHandler makes the handler. It is gosdk.NewHandler if it is nil.
	NewHandler func(*taskserver.Server, func(*http.Request) *mcp.Server, *mcp.StreamableHTTPOptions) http.Handler
	// Before and SDK are called with the SDK's server, before and after AddTools.
	Before, SDK func(*mcp.Server)
	// Revision is the revision that the test is about. If it is the candidate, the server also
	// speaks that, on candidatePath, and Gateway is set to that path's gateway.
	Revision string
}

// Serve starts a server of the pipeline's tools.
func Serve(t testing.TB, options taskserver.Options) (url string, tasks *taskserver.Server) {
	t.Helper()
	return ServeWith(t, Setup{Options: options, Panics: true})
}

// RunWithPeer runs a test in a bubble, beside other tests, with a server and a client of the revision
// that the test is about. The client's token is "a" if the server requires one.
func RunWithPeer(t *testing.T, s Setup, test func(t *testing.T, p *Peer)) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := ServeWith(t, s)
		token := ""
		if s.Bearer {
			token = "a"
		}
		test(t, NewPeer(t, url, s.Revision, token))
	})
}

// NewSibling returns another client of the peer's server.
func (p *Peer) NewSibling(revision, token string) *Peer {
	p.T.Helper()
	return NewPeer(p.T, strings.TrimSuffix(p.URL, candidatePath), revision, token)
}

// NoPollLimits lets tests poll faster than clients may.
var NoPollLimits = taskserver.Limits{Polls: -1, Lists: -1}

// ServeWith starts a server of the pipeline's tools and ExtraTools. A panic in its log fails the
// test.
func ServeWith(t testing.TB, s Setup) (url string, tasks *taskserver.Server) {
	t.Helper()
	logs := &SafeBuffer{}
	if s.Options.Logger == nil {
		s.Options.Logger = slog.New(slog.NewTextHandler(logs, nil))
	}
	if s.Options.Limits == (taskserver.Limits{}) {
		s.Options.Limits = NoPollLimits
	}
	pipelineTools := AllRevisionsCITools()
	if !s.Fallback {
		pipelineTools.Fallback = mcptask.FallbackNone
	}
	if s.Revision == CandidateRevision {
		s.Options.Revisions = []string{LegacyRevision, CandidateRevision, ModernRevision}
	}
	services := append(s.Tools, pipelineTools, ExtraTools())
	for i := range services {
		if s.Options.Revisions != nil && services[i].Capabilities != nil { // which is generated for the released ones
			services[i].Capabilities = mcptask.Declared()
		}
	}
	tasks, err := taskserver.New(s.Options, services...)
	if err != nil {
		t.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	mcp.AddTool(sdk, &mcp.Tool{Name: "sdk_tool", Description: "is the SDK's own"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "from the SDK"}}}, nil, nil
		})
	if s.Middleware != nil {
		sdk.AddReceivingMiddleware(s.Middleware)
	}
	if s.Before != nil {
		s.Before(sdk)
	}
	gosdk.AddTools(sdk, tasks)
	if s.SDK != nil {
		s.SDK(sdk)
	}
	get := func(*http.Request) *mcp.Server { return sdk }
	if s.NewHandler == nil {
		s.NewHandler = gosdk.NewHandler
	}
	handler := wirecheck.Handler(t, s.wrapHandler(s.NewHandler(tasks, get, s.HTTP), sdk))
	if s.Revision == CandidateRevision {
		paths := http.NewServeMux()
		paths.Handle("/", handler)
		paths.Handle(candidatePath, wirecheck.RevisionHandler(t, CandidateRevision,
			s.wrapHandler(gosdk.NewRevisionHandler(tasks, CandidateRevision, get, s.HTTP), sdk)))
		handler = paths
	}
	url, end := s.listen(handler, log.New(logs, "", 0))
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		end()
		EndSessions(sdk)
		if text := logs.String(); !s.Panics && strings.Contains(text, "panic") {
			t.Errorf("the server has panicked:\n%s", text)
		}
	})
	return url, tasks
}

// EndSessions ends the sessions that clients have left open.
func EndSessions(sdk *mcp.Server) {
	for session := range sdk.Sessions() {
		_ = session.Close()
	}
}

// listen serves a handler in memory, unless the test starts the server itself.
func (s Setup) listen(handler http.Handler, logs *log.Logger) (url string, end func()) {
	if s.Start == nil {
		server := memnet.NewServer(handler, logs)
		return server.URL, server.Close
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = logs
	s.Start(server)
	return server.URL, func() {
		server.CloseClientConnections()
		server.Close()
	}
}

// AllRevisionsCITools returns the pipeline's tools as generated for every revision.
func AllRevisionsCITools() mcptask.Tools {
	tools := pipeline.CITools(CI{})
	tools.Capabilities = mcptask.Declared()
	return tools
}

// wrapHandler wraps a gateway as the test asks.
func (s Setup) wrapHandler(handler http.Handler, sdk *mcp.Server) http.Handler {
	if s.Gateway != nil {
		*s.Gateway = handler.(*gateway.Gateway)
	}
	if s.Bearer {
		handler = gosdk.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			info := &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}
			if token == "nobody" {
				info.UserID = ""
			}
			return info, nil
		}, nil)(handler)
	}
	if s.Wrap != nil {
		handler = s.Wrap(handler, sdk)
	}
	return handler
}

// SafeBuffer is a buffer for concurrent writers, such as a log that a test reads.
type SafeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *SafeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns what has been written so far.
func (b *SafeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// WaitFor waits until a text has been written n times, and returns the whole text. A test that sees an effect must
// still wait, because its record may be written later.
func (b *SafeBuffer) WaitFor(t testing.TB, text string, n int) string {
	t.Helper()
	Await(t, func() (missing string) {
		if all := b.String(); strings.Count(all, text) < n {
			return fmt.Sprintf("%q was not written %d times:\n%s", text, n, all)
		}
		return ""
	})
	return b.String()
}

// PonderInput is the input of the tool "ponder".
type PonderInput struct {
	MS       int  `json:"ms"`
	Stubborn bool `json:"stubborn"`
}

// NoteInput is the answer to the question NoteSpec.
type NoteInput struct {
	Note string `json:"note"`
}

// OpenObject is the schema of any object.
const OpenObject = `{"type":"object"}`

// ExtraTools returns tools for what the pipeline's tools do not cover.
func ExtraTools() mcptask.Tools {
	optional := mcptask.Policy{Task: mcptask.TaskOptional, Poll: 100 * time.Millisecond}
	immediate := optional
	immediate.Immediate = "The task is under way."
	graceful := optional
	graceful.Grace = time.Hour
	return mcptask.Tools{Service: "Extra", Impl: struct{}{}, Tools: []mcptask.Tool{
		// ponder takes a while, reports progress, and ignores its cancellation if it is stubborn.
		mcptask.NewTool(mcptask.ToolSpec{Name: "ponder", InputSchema: OpenObject, Policy: immediate}, ponder),
		mcptask.NewTool(mcptask.ToolSpec{Name: "ponder_at_once", InputSchema: OpenObject, Policy: graceful}, ponder),
		// raw has a result with everything that decoding and encoding could damage.
		mcptask.NewTool(mcptask.ToolSpec{Name: "raw", InputSchema: OpenObject, Policy: optional},
			func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) {
				return &mcptask.Result{
					Content: []mcptask.Content{mcptask.TextContent("a < b && \u2028 \"c\""), mcptask.ImageContent([]byte{1, 2}, "image/png"),
						mcptask.Content(`{"type":"text","text":"t","_meta":{"n":9007199254740993}}`)},
					Structured: json.RawMessage(`{"big":9007199254740993,"one":1.0,"nested":{"null":null}}`),
					Meta:       map[string]json.RawMessage{"com.example/own": json.RawMessage(`{"n":9007199254740993}`)},
				}, nil
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "future", InputSchema: OpenObject, Policy: optional},
			func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) {
				return &mcptask.Result{Content: []mcptask.Content{mcptask.Content(`{"type":"scene","hologram":{"z":1.50}}`)}}, nil
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "locked", InputSchema: OpenObject, Policy: optional},
			func(context.Context, *mcptask.Task, struct{}) (string, error) {
				err := mcptask.Errorf(4055, "the repository is locked")
				err.Data = json.RawMessage(`{"by":"somebody","since":[1,2]}`)
				return "", fmt.Errorf("wrapped: %w", err)
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "two_notes", InputSchema: OpenObject, Policy: optional},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				var notes [2]NoteInput
				var errs [2]error
				var both sync.WaitGroup
				for i, step := range []string{"first", "second"} {
					both.Go(func() { notes[i], errs[i] = mcptask.Ask[NoteInput](ctx, task, NoteSpec, step, "") })
				}
				both.Wait()
				return notes[0].Note + " and " + notes[1].Note, errors.Join(errs[:]...)
			}),
	}}
}

func ponder(ctx context.Context, task *mcptask.Task, in PonderInput) (string, error) {
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
