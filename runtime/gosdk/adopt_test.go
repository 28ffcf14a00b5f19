package gosdk_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/failures"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

type sumInput struct {
	Numbers []int  `json:"numbers"`
	Fail    string `json:"fail,omitempty"`
}

type sumOutput struct {
	Sum int `json:"sum"`
}

// sum is an SDK handler as users write them.
func sum(ctx context.Context, req *mcp.CallToolRequest, in sumInput) (*mcp.CallToolResult, sumOutput, error) {
	switch in.Fail {
	case "tool":
		return nil, sumOutput{}, errors.New("cannot add")
	case "typed":
		return nil, sumOutput{}, failures.NewNotFound("a01", nil)
	case "protocol":
		return nil, sumOutput{}, &jsonrpc.Error{Code: -32050, Message: "locked"}
	case "panic":
		panic("a bug")
	}
	if req.Params.Name != "sum" {
		return nil, sumOutput{}, errors.New("no params")
	}
	select {
	case <-time.After(50 * time.Millisecond): // longer than the request
	case <-ctx.Done():
		return nil, sumOutput{}, ctx.Err()
	}
	out := sumOutput{}
	for _, n := range in.Numbers {
		out.Sum += n
	}
	return nil, out, nil
}

func TestAddTaskTool(t *testing.T) {
	tasks, sdk := newServer(t, taskserver.Options{})
	policy := mcptask.Policy{Task: mcptask.TaskRequired, Poll: 20 * time.Millisecond}
	if err := gosdk.AddTaskTool(sdk, tasks, &mcp.Tool{Name: "sum", Description: "adds numbers"}, sum, policy); err != nil {
		t.Fatal(err)
	}
	if err := gosdk.AddTaskTool(sdk, tasks, &mcp.Tool{Name: "worse"}, sum, mcptask.Policy{Task: "sometimes"}); err == nil {
		t.Error("a policy that means nothing")
	}
	url := serveHTTP(t, wirecheck.Legacy, tasks, sdk)

	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		conn := dial(t, url, gosdk.ClientOptions{Revision: revision})
		call, err := mcptask.Start[sumOutput](t.Context(), conn, "sum", sumInput{Numbers: []int{1, 2, 3}})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := call.Token(); !ok {
			t.Error("not a task")
		}
		if out, err := call.Wait(t.Context()); err != nil || out.Sum != 6 {
			t.Errorf("%+v, %v", out, err)
		}
		var toolErr *mcptask.ToolError
		if _, err := mcptask.Run[sumOutput](t.Context(), conn, "sum", sumInput{Numbers: []int{}, Fail: "tool"}); !errors.As(err, &toolErr) || toolErr.Result.Text() != "cannot add" {
			t.Error(err)
		}
		var notFound *failures.NotFound
		if _, err := mcptask.Run[sumOutput](t.Context(), conn, "sum", sumInput{Numbers: []int{}, Fail: "typed"}); !errors.As(err, &notFound) || notFound.Asset != "a01" {
			t.Error(err)
		}
		for fail, code := range map[string]int{"protocol": -32050, "panic": mcptask.CodeInternalError} {
			if _, err := mcptask.Run[sumOutput](t.Context(), conn, "sum", sumInput{Numbers: []int{}, Fail: fail}); !isError(code)(err) {
				t.Error(fail, err)
			}
		}
	})
}

// TestChangedTaskTool restarts a server whose tool has another input by then.
func TestChangedTaskTool(t *testing.T) {
	type wider struct {
		Numbers []int  `json:"numbers"`
		Codec   string `json:"codec"`
	}
	policy := mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost, Poll: 20 * time.Millisecond}
	store := taskstore.NewMemory()
	tasks, sdk := newServer(t, taskserver.Options{Store: store})
	began := make(chan struct{})
	if err := gosdk.AddTaskTool(sdk, tasks, &mcp.Tool{Name: "sum"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ sumInput) (*mcp.CallToolResult, sumOutput, error) {
		close(began)
		<-ctx.Done()
		return nil, sumOutput{}, ctx.Err()
	}, policy); err != nil {
		t.Fatal(err)
	}
	call, err := mcptask.Start[sumOutput](t.Context(), dial(t, serveHTTP(t, wirecheck.Legacy, tasks, sdk), gosdk.ClientOptions{}), "sum", sumInput{Numbers: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	<-began
	if err := tasks.Close(); err != nil {
		t.Fatal(err)
	}
	token, _ := call.Token()
	again, sdk := newServer(t, taskserver.Options{Store: store})
	if err := gosdk.AddTaskTool(sdk, again, &mcp.Tool{Name: "sum"}, func(context.Context, *mcp.CallToolRequest, wider) (*mcp.CallToolResult, sumOutput, error) {
		return nil, sumOutput{}, errors.New("it ran")
	}, policy); err != nil {
		t.Fatal(err)
	}
	resumed, err := mcptask.Resume[sumOutput](dial(t, serveHTTP(t, wirecheck.Legacy, again, sdk), gosdk.ClientOptions{}), "sum", token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resumed.Wait(t.Context()); !errors.Is(err, mcptask.ErrChanged) || !strings.Contains(err.Error(), "started under another declaration: ") || !strings.Contains(err.Error(), "codec") {
		t.Error(err)
	}
}
