package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

type shipInput struct {
	Service string `json:"service" jsonschema:"what to ship"`
	Steps   int    `json:"steps" jsonschema:"how many steps to report"`
}

type shipOutput struct {
	Note string `json:"note"`
	Task string `json:"task"`
}

// ship is an SDK handler that uses its session, as users write them.
func ship(ctx context.Context, req *mcp.CallToolRequest, in shipInput) (*mcp.CallToolResult, shipOutput, error) {
	var out shipOutput
	for i := range in.Steps {
		if token := req.Params.GetProgressToken(); token != nil {
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(i + 1), Total: float64(in.Steps), Message: fmt.Sprint("step ", i+1),
			}); err != nil {
				return nil, out, err
			}
		}
		time.Sleep(2 * time.Second)
	}
	for range 2 {
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Ship " + in.Service + "?",
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`)})
		if err != nil {
			return nil, out, err
		}
		out.Note += fmt.Sprint(answer.Action, " ", answer.Content["note"], ";")
	}
	if task, ok := mcptask.FromContext(ctx); ok {
		out.Task = task.ID()
	}
	return nil, out, nil
}

var shipTool = &mcp.Tool{
	Name: "ship", Title: "Ship it", Description: "Ships a service.",
	Annotations: &mcp.ToolAnnotations{DestructiveHint: new(bool), IdempotentHint: true, Title: "Ship"},
	Meta:        mcp.Meta{"example.com/team": "ops"},
	Icons:       []mcp.Icon{{Source: "https://example.com/ship.png"}},
}

// newShip returns a server that has the tool as a task tool.
func newShip(t *testing.T, options taskserver.Options) (tasks *taskserver.Server, sdk *mcp.Server) {
	t.Helper()
	tasks, sdk = newServer(t, options)
	if err := gosdk.AddTaskTool(sdk, tasks, shipTool, ship, mcptask.Policy{Poll: time.Second}); err != nil {
		t.Fatal(err)
	}
	return tasks, sdk
}

// sdkClient is a client of the SDK that answers questions and records progress.
type sdkClient struct {
	*mcp.ClientSession
	mu       sync.Mutex
	progress []string
}

// connectSDK connects a client of the SDK.
func connectSDK(t *testing.T, transport mcp.Transport, revision string) *sdkClient {
	t.Helper()
	c := new(sdkClient)
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"note": "re: " + req.Params.Message}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.progress = append(c.progress, fmt.Sprintln(req.Params.ProgressToken, req.Params.Progress, req.Params.Total, req.Params.Message))
		},
	})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	c.ClientSession = session
	return c
}

// shipPlainly calls the tool and returns its structured output.
func (c *sdkClient) shipPlainly(t *testing.T, arguments any) (*mcp.CallToolResult, shipOutput) {
	t.Helper()
	params := &mcp.CallToolParams{Name: "ship", Arguments: arguments}
	params.SetProgressToken("mine")
	result, err := c.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(result.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var out shipOutput
	_ = json.Unmarshal(data, &out)
	return result, out
}

const shippedNote = "accept re: Ship api?;accept re: Ship api?;"

// TestAdoptedSession checks the progress and the questions of a handler that knows nothing of tasks, as a task and in a
// plain call of a client of the SDK, over HTTP and in memory.
func TestAdoptedSession(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		tasks, sdk := newShip(t, taskserver.Options{})
		url := serveHTTP(t, wirecheck.Legacy, tasks, sdk)

		conn := dial(t, url, gosdk.ClientOptions{Revision: revision, Answer: mcptask.AnswerAny(func(_ context.Context, q mcptask.Question) (json.RawMessage, error) {
			return json.RawMessage(`{"note":"re: ` + q.Message + `"}`), nil
		})})
		call, err := mcptask.Start[shipOutput](t.Context(), conn, "ship", shipInput{Service: "api", Steps: 3})
		if err != nil {
			t.Fatal(err)
		}
		var messages []string
		for snapshot, err := range call.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			messages = append(messages, snapshot.Message)
		}
		if !slices.Contains(messages, "step 2 (2/3)") {
			t.Errorf("the messages are %q", messages)
		}
		out, err := call.Wait(t.Context())
		if err != nil || out.Note != shippedNote || out.Task == "" {
			t.Errorf("as a task: %+v, %v", out, err)
		}

		mine, theirs := mcp.NewInMemoryTransports()
		session, err := sdk.Connect(t.Context(), gosdk.Transport(tasks, theirs), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Wait() })
		for name, transport := range map[string]mcp.Transport{"HTTP": &mcp.StreamableClientTransport{Endpoint: url}, "memory": mine} {
			client := connectSDK(t, transport, revision)
			if result, out := client.shipPlainly(t, shipInput{Service: "api", Steps: 3}); out.Note != shippedNote || out.Task == "" {
				t.Errorf("%s: %+v %+v", name, result.Content[0], out)
			}
			client.mu.Lock()
			if !slices.Contains(client.progress, "mine 2 3 step 2\n") {
				t.Errorf("%s: the progress is %q", name, client.progress)
			}
			client.mu.Unlock()
			_ = client.Close()
		}
	})
}

// newBare returns a server that has the tool as mcp.AddTool adds it, and connects a client to it.
func newBare(t *testing.T, revision string) *sdkClient {
	t.Helper()
	bare := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(bare, shipTool, ship)
	return connectInMemory(t, bare, revision, func(t mcp.Transport) mcp.Transport { return t })
}

// connectInMemory connects a client to a server by the wrapped transport.
func connectInMemory(t *testing.T, server *mcp.Server, revision string, wrap func(mcp.Transport) mcp.Transport) *sdkClient {
	t.Helper()
	mine, theirs := mcp.NewInMemoryTransports()
	session, err := server.Connect(t.Context(), wrap(theirs), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Wait() })
	return connectSDK(t, mine, revision)
}

// TestAdoptedAsBare checks that a tool is listed, and refuses arguments, exactly as mcp.AddTool's. The output schema
// that a caller without tasks sees also admits the answer of a call that goes on.
func TestAdoptedAsBare(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		created := 0
		hooks := taskserver.Hooks{Task: func(context.Context, taskserver.TaskEvent) { created++ }}
		tasks, sdk := newShip(t, taskserver.Options{Hooks: []taskserver.Hooks{hooks}})
		bridged := func(inner mcp.Transport) mcp.Transport { return gosdk.Transport(tasks, inner) }
		ours, bare := connectInMemory(t, sdk, revision, bridged), newBare(t, revision)
		listed, want := ours.listShip(t), bare.listShip(t)
		conn := dial(t, serveHTTP(t, wirecheck.Legacy, tasks, sdk), gosdk.ClientOptions{Revision: revision})
		if wide, ok := listed.OutputSchema.(map[string]any)["anyOf"].([]any); ok {
			listed.OutputSchema = wide[0]
		}
		if !reflect.DeepEqual(listed, want) {
			t.Errorf("listed is\n%+v\nwant\n%+v", listed, want)
		}
		for _, bad := range []string{`{}`, `{"service":1,"steps":1}`, `{"service":"api","steps":1.5}`, `{"service":"api","steps":1,"more":true}`, `null`, `[1]`, `"x"`} {
			got, _ := ours.shipPlainly(t, json.RawMessage(bad))
			want, _ := bare.shipPlainly(t, json.RawMessage(bad))
			if !got.IsError || !reflect.DeepEqual(got.Content, want.Content) || !reflect.DeepEqual(got.StructuredContent, want.StructuredContent) {
				t.Errorf("%s: %+v, want %+v", bad, got.Content[0], want.Content[0])
			}
			_, err := mcptask.Start[shipOutput](t.Context(), conn, "ship", json.RawMessage(bad))
			if refused := isError(mcptask.CodeInvalidParams)(err); bad != "null" && refused != (revision == wiretest.LegacyRevision) {
				t.Errorf("%s, as a task: %v", bad, err)
			}
		}
		if created > 0 {
			t.Errorf("%d tasks were created", created)
		}
	})
}

// listShip returns the tool's entry in the list.
func (c *sdkClient) listShip(t *testing.T) (entry *mcp.Tool) {
	t.Helper()
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.Name == "ship" {
			entry = tool
		}
	}
	return entry
}

// sayAll is a handler that sends all that a session of 2025-11-25 can send.
func sayAll(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	var said []string
	add := func(what string, result any, err error) {
		if err != nil {
			result = err
		}
		said = append(said, fmt.Sprintf("%s: %v", what, result))
	}
	roots, err := req.Session.ListRoots(ctx, nil)
	add("roots", roots.Roots[0].URI, err)
	message := []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Sum up."}}}
	sampled, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 10, Messages: message})
	add("sample", sampled.Model, err)
	_, err = req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 10, Messages: message, IncludeContext: "allServers"})
	add("context", "", err)
	opened, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Mode: "url", Message: "Pay.", URL: "https://example.com/pay", ElicitationID: "1"})
	add("url", opened.Action, err)
	for range 2 {
		add("log", "", req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "hello"})) //nolint:staticcheck // servers may send it for now
	}
	add("ping", "", req.Session.Ping(ctx, nil))
	add("client", req.Session.InitializeParams().ClientInfo.Name, nil)
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = req.Session.Elicit(brief, &mcp.ElicitParams{Message: "Never answered?"})
	add("late", "", err)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(said, "\n")}}}, nil, nil
}

// TestAdoptedMessages checks which messages of a handler reach the client, and that the others warn once.
func TestAdoptedMessages(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		log := new(wiretest.SafeBuffer)
		tasks, sdk := newServer(t, taskserver.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err := gosdk.AddTaskTool(sdk, tasks, &mcp.Tool{Name: "say"}, sayAll, mcptask.Policy{}); err != nil {
			t.Fatal(err)
		}
		conn := dial(t, serveHTTP(t, wirecheck.Legacy, tasks, sdk), gosdk.ClientOptions{
			Revision: revision,
			Answer: mcptask.AnswerAny(func(ctx context.Context, _ mcptask.Question) (json.RawMessage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}),
			OpenURL: func(context.Context, mcptask.Question) error { return mcptask.ErrDeclined },
			Sample: func(context.Context, mcptask.SampleRequest) (*mcptask.SampleResult, error) {
				return &mcptask.SampleResult{Role: "assistant", Model: "m", Content: []mcptask.Content{mcptask.TextContent("…")}}, nil
			},
			Roots: []mcptask.Root{{URI: "file:///r"}},
		})
		for range 2 {
			got, err := mcptask.Run[string](t.Context(), conn, "say", struct{}{})
			for _, want := range []string{"roots: file:///r\n", "sample: m\n", `unknown field "includeContext"`, "url: decline\n", "log: \n", "ping: \n", "client: ", "late: context deadline exceeded"} {
				if err != nil || !strings.Contains(got, want) {
					t.Errorf("no %q in %s, %v", want, got, err)
				}
			}
		}
		if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "tool=say method=notifications/message") {
			t.Errorf("the log is\n%s", text)
		}
	})
}
