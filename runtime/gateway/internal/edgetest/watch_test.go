package edgetest

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// lastingRequest is a request whose response lasts as long as its client wants, or a task does.
type lastingRequest struct {
	revision, method string
	// params returns the params of a POST for a task that does not end. nil means a GET.
	params func(task string) map[string]any
	edits  []wiretest.Edit
}

func listenParams(filter map[string]any) map[string]any {
	return map[string]any{"notifications": filter}
}

var lastingRequests = map[string]lastingRequest{
	"GET": {revision: wiretest.LegacyRevision},
	"tasks/result": {revision: wiretest.LegacyRevision, method: "tasks/result",
		params: func(task string) map[string]any { return map[string]any{"taskId": task} }},
	"tasks/result in JSON": {revision: wiretest.LegacyRevision, method: "tasks/result", edits: []wiretest.Edit{wiretest.JSONOnly},
		params: func(task string) map[string]any { return map[string]any{"taskId": task} }},
	"listen to a task": {revision: wiretest.ModernRevision, method: "subscriptions/listen",
		params: func(task string) map[string]any { return listenParams(map[string]any{"taskIds": []string{task}}) }},
	"listen to tools": {revision: wiretest.ModernRevision, method: "subscriptions/listen",
		params: func(string) map[string]any { return listenParams(map[string]any{"toolsListChanged": true}) }},
	"listen to both": {revision: wiretest.ModernRevision, method: "subscriptions/listen",
		params: func(task string) map[string]any {
			return listenParams(map[string]any{"taskIds": []string{task}, "toolsListChanged": true})
		}},
	"a call that waits for its task": {revision: wiretest.LegacyRevision, method: "tools/call",
		params: func(string) map[string]any {
			return map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless"),
				"_meta": map[string]any{"modelcontextprotocol.io/task": map[string]any{"taskId": rand.Text()}}}
		}},
}

// endOf sends the request and returns how long its response has lasted. It gives up after an hour.
func (l lastingRequest) endOf(t *testing.T, url, token string) time.Duration {
	t.Helper()
	p := wiretest.NewPeer(t, url, l.revision, token)
	task := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	method, body, edits := http.MethodGet, "", l.edits
	if l.params != nil {
		method = http.MethodPost
		body, edits = p.Request(l.method, l.params(task), l.edits...)
	}
	began := time.Now()
	client := &http.Client{Transport: memnet.NewTransport()}
	defer client.CloseIdleConnections()
	res, err := client.Do(p.NewRequest(ctx, method, body, edits...))
	if err != nil {
		if ctx.Err() == nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("HTTP status %d", res.StatusCode)
	}
	_, _ = io.Copy(io.Discard, res.Body) // until the response ends
	return time.Since(began)
}

// TestStreamsEndWithTheirToken checks that a stream, a subscription and a request that waits for a task end when the
// token of their request expires, and not before.
func TestStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	const life = 7*time.Minute + time.Second
	for name, request := range lastingRequests {
		bubble.Run(t, name, func(t *testing.T) {
			verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
				info := &auth.TokenInfo{UserID: "a"}
				if token == "mortal" {
					info.Expiration = time.Now().Add(life)
				}
				return info, nil
			}
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Options: wiretest.WithProposal(), Wrap: func(h http.Handler, _ *mcp.Server) http.Handler {
				return auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
			}})
			if took := request.endOf(t, url, "mortal"); took != life {
				t.Errorf("it ends after %v, and its token after %v", took, life)
			}
			if took := request.endOf(t, url, "immortal"); took < time.Hour {
				t.Errorf("it ends after %v, although its token does not expire", took)
			}
		})
	}
}

// TestStreamsEndWithTheirCaller checks that Options.Principal is asked again while such a response lasts. An error, another
// principal and a panic end it.
func TestStreamsEndWithTheirCaller(t *testing.T) {
	t.Parallel()
	const until = 5 * time.Minute
	for name, request := range lastingRequests {
		for how, later := range map[string]func() (string, error){
			"an error":          func() (string, error) { return "a", errors.New("the user was removed") },
			"another principal": func() (string, error) { return "b", nil },
			"a panic":           func() (string, error) { panic("the directory is gone") },
		} {
			bubble.Run(t, name+"/"+how, func(t *testing.T) {
				began := time.Now()
				options := wiretest.WithProposal()
				options.Principal = func(context.Context) (string, error) {
					if time.Since(began) > until {
						return later()
					}
					return "a", nil
				}
				url, _ := wiretest.ServeWith(t, wiretest.Setup{Panics: true, Options: options})
				if took := request.endOf(t, url, ""); took < until || took > until+time.Minute {
					t.Errorf("it ends after %v, and its caller after %v", took, until)
				}
			})
		}
	}
}

// TestCallsOutliveTheirToken checks that a call is answered even if its token has expired meanwhile.
func TestCallsOutliveTheirToken(t *testing.T) {
	t.Parallel()
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		verify := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: "a", Expiration: time.Now().Add(time.Second)}, nil
		}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Wrap: func(h http.Handler, _ *mcp.Server) http.Handler {
			return auth.RequireBearerToken(verify, nil)(h)
		}})
		p := wiretest.NewPeer(t, url, revision, "short")
		p.Caps = "{}"
		p.CallTool("ponder", map[string]any{"ms": 30_000}).WantText(false, "pondered")
	})
}
