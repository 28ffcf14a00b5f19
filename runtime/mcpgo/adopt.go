package mcpgo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// AddTaskTool adds a tool that runs as a task behind NewHandler and ServeStdio. It takes the arguments of
// s.AddTool, and the policy of the task. A Policy.Task of "" means the tool's own Execution, or [mcptask.TaskOptional]. The
// tool is listed as mcp-go lists it. AddTaskTool also adds the fallback tools.
//
// The handler stays as it is. Each run of it is a tools/call that mcp-go handles with a session of its own, so middleware,
// hooks and filters see the run. In the handler, [mcptask.FromContext] returns the task, also in a plain call. The context
// ends with the task, not with the request. It has no values of a server.HTTPContextFunc: [taskserver.Options.Context]
// adds values.
//
// Progress notifications report the task's progress. Elicitation, sampling and requests for roots ask questions of the
// task. The same question has the same answer when the handler runs again. Other notifications are dropped, and the first
// one of each kind logs a warning.
//
// A program may add the tool to several servers. Equal tools are then one tool. If a tool differs, AddTaskTool returns an
// error that names the difference, and s is as it was. A call runs on the server that it came through. A run after a
// restart, or in another process, has the server that was given the tool first.
//
// A call that does not come through NewHandler or ServeStdio runs without a task, and logs a warning.
func AddTaskTool(s *server.MCPServer, tasks *taskserver.Server, tool mcp.Tool, handler server.ToolHandlerFunc, policy mcptask.Policy) error {
	if execution := tool.Execution; execution != nil { // mcp-go would refuse plain calls
		if tool.Execution = nil; policy.Task == "" {
			policy.Task = mcptask.TaskSupport(execution.TaskSupport)
		}
	}
	all := adoptionsOf(tasks.Backend())
	before := s.GetTool(tool.Name)
	entry, err := addTool(s, tool, func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if _, ok := mcptask.FromContext(ctx); !ok {
			gateway.WarnOnce(tasks.Backend(), "a call runs without a task, since it has not come through the gateway: "+
				"serve with mcpgo.NewHandler or mcpgo.ServeStdio", "tool", tool.Name)
		}
		return handler(ctx, request)
	})
	if err == nil {
		err = gateway.Adopt(tasks, entry, policy, all.newBinder(s, tool.Name, nil, nil))
	}
	if err != nil {
		if before != nil {
			s.AddTools(*before)
		} else {
			s.DeleteTools(tool.Name)
		}
		return fmt.Errorf("mcpgo: %w", err)
	}
	all.note(s, tool.Name)
	addSpecs(s, gateway.FallbackTools(tasks.Backend(), tool.Name))
	return nil
}

// addTool adds a tool and returns its entry in the list.
func addTool(s *server.MCPServer, tool mcp.Tool, handler server.ToolHandlerFunc) (entry json.RawMessage, err error) {
	if tool.Name == "" {
		return nil, fmt.Errorf("the tool has no name")
	}
	defer func() { // mcp-go panics if it refuses a tool
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	s.AddTool(tool, handler)
	return json.Marshal(s.GetTool(tool.Name).Tool)
}

// adoptions knows which of mcp-go's servers have which adopted tools. It is safe for concurrent use.
type adoptions struct {
	tasks *taskserver.Backend

	mu      sync.Mutex
	servers map[weak.Pointer[server.MCPServer]]map[string]bool
}

type adoptionsKey struct{}

func adoptionsOf(tasks *taskserver.Backend) *adoptions {
	return tasks.Attached(adoptionsKey{}, func() any {
		return &adoptions{tasks: tasks, servers: map[weak.Pointer[server.MCPServer]]map[string]bool{}}
	}).(*adoptions)
}

// note notes that a tool was adopted from a server.
func (a *adoptions) note(s *server.MCPServer, tool string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for known := range a.servers {
		if known.Value() == nil { // the program has dropped it
			delete(a.servers, known)
		}
	}
	key := weak.Make(s)
	if a.servers[key] == nil {
		a.servers[key] = map[string]bool{}
	}
	a.servers[key][tool] = true
}

// has reports whether a tool was adopted from a server.
func (a *adoptions) has(s *server.MCPServer, tool string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.servers[weak.Make(s)][tool]
}

// binderFor returns the [gateway.Config.FindBinder] of a gateway in front of a server.
func (a *adoptions) binderFor(s *server.MCPServer) func(string, taskserver.Caller, json.RawMessage) (gateway.Binder, bool) {
	return func(tool string, caller taskserver.Caller, meta json.RawMessage) (gateway.Binder, bool) {
		if !gateway.IsAdopted(a.tasks, tool) {
			return nil, true
		}
		if !a.has(s, tool) {
			return nil, false
		}
		return a.newBinder(s, tool, &caller, meta), true
	}
}

// newBinder returns the binder of the calls of a tool. caller and meta are nil if the call is not known.
func (a *adoptions) newBinder(s *server.MCPServer, tool string, caller *taskserver.Caller, meta json.RawMessage) gateway.Binder {
	return func(arguments json.RawMessage) (mcptask.BoundCall, error) {
		return func(ctx context.Context, task *mcptask.Task) (*mcptask.Result, error) {
			return a.run(ctx, s, newRunSession(a, task, tool, caller), meta, arguments)
		}, nil
	}
}

// run has mcp-go handle a call.
func (a *adoptions) run(ctx context.Context, s *server.MCPServer, session *runSession, meta, arguments json.RawMessage) (*mcptask.Result, error) {
	all := map[string]json.RawMessage{}
	if meta != nil {
		if err := json.Unmarshal(meta, &all); err != nil {
			return nil, fmt.Errorf("the _meta of the call is malformed: %w", err)
		}
	}
	// mcp-go sends no requests in 2026-07-28, in which clients answer questions by a repeated call. The session can ask.
	delete(all, mcp.MetaKeyProtocolVersion)
	if all["progressToken"] == nil { // many handlers report only if there is one
		all["progressToken"] = json.RawMessage(`"` + session.id + `"`)
	}
	message, err := json.Marshal(map[string]any{
		"jsonrpc": mcp.JSONRPC_VERSION, "id": rand.Text(), "method": mcp.MethodToolsCall,
		"params": map[string]any{"name": session.tool, "arguments": arguments, "_meta": all},
	})
	if err != nil {
		return nil, err
	}
	defer session.passOn(ctx)()
	data, err := json.Marshal(s.HandleMessage(s.WithContext(ctx, session), message))
	if err != nil {
		return nil, err
	}
	var reply struct {
		Result *mcptask.Result `json:"result"`
		Error  *mcptask.Error  `json:"error"`
	}
	switch err := json.Unmarshal(data, &reply); {
	case err != nil:
		return nil, err
	case reply.Error != nil && ctx.Err() != nil: // the handler has ended with its context
		return nil, ctx.Err()
	case reply.Error != nil:
		return nil, reply.Error
	case reply.Result == nil:
		return nil, mcptask.Errorf(mcptask.CodeInternalError, "the tool %q has no result", session.tool)
	}
	return reply.Result, nil
}
