package mcpgo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// maxNotifications is how many notifications of a run wait at most. It is mcp-go's own number.
const maxNotifications = 100

// runSession is mcp-go's session of one run of a handler. It turns what the handler sends to its client into calls of the
// task. It is safe for concurrent use.
type runSession struct {
	adoptions     *adoptions
	task          *mcptask.Task
	id, tool      string
	client        mcp.Implementation
	capabilities  mcp.ClientCapabilities
	notifications chan mcp.JSONRPCNotification
}

var (
	_ server.SessionWithLogging     = (*runSession)(nil)
	_ server.SessionWithClientInfo  = (*runSession)(nil)
	_ server.SessionWithElicitation = (*runSession)(nil)
	_ server.SessionWithSampling    = (*runSession)(nil)
	_ server.SessionWithRoots       = (*runSession)(nil)
)

// newRunSession returns the session of a run. caller is nil if it is not known: then the session shows all capabilities,
// and a question that the caller cannot answer fails.
func newRunSession(a *adoptions, task *mcptask.Task, tool string, caller *taskserver.Caller) *runSession {
	s := &runSession{adoptions: a, task: task, id: rand.Text(), tool: tool, notifications: make(chan mcp.JSONRPCNotification, maxNotifications)}
	answers := func(method mcp.MCPMethod) bool {
		return caller == nil || slices.Contains(caller.CanAsk, string(method))
	}
	if answers(mcp.MethodElicitationCreate) {
		s.capabilities.Elicitation = &mcp.ElicitationCapability{}
	}
	if answers(mcp.MethodSamplingCreateMessage) {
		s.capabilities.Sampling = &mcp.SamplingCapability{}
	}
	if answers(mcp.MethodListRoots) {
		s.capabilities.Roots = &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{}
	}
	if caller != nil {
		s.client = mcp.Implementation{Name: caller.Client.Name, Version: caller.Client.Version}
	}
	return s
}

// SessionID implements server.ClientSession.
func (s *runSession) SessionID() string { return s.id }

// Initialize implements server.ClientSession.
func (s *runSession) Initialize() {}

// Initialized implements server.ClientSession.
func (s *runSession) Initialized() bool { return true }

// NotificationChannel implements server.ClientSession.
func (s *runSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notifications }

// SetLogLevel implements server.SessionWithLogging.
func (s *runSession) SetLogLevel(mcp.LoggingLevel) {}

// GetLogLevel implements server.SessionWithLogging. The log warns of messages at any level.
func (s *runSession) GetLogLevel() mcp.LoggingLevel { return mcp.LoggingLevelDebug }

// GetClientInfo implements server.SessionWithClientInfo.
func (s *runSession) GetClientInfo() mcp.Implementation { return s.client }

// SetClientInfo implements server.SessionWithClientInfo.
func (s *runSession) SetClientInfo(mcp.Implementation) {}

// GetClientCapabilities implements server.SessionWithClientInfo.
func (s *runSession) GetClientCapabilities() mcp.ClientCapabilities { return s.capabilities }

// SetClientCapabilities implements server.SessionWithClientInfo.
func (s *runSession) SetClientCapabilities(mcp.ClientCapabilities) {}

// passOn starts to pass on notifications. stop passes on those that were sent before, and returns.
func (s *runSession) passOn(ctx context.Context) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	guard.Go(s.adoptions.tasks.Logger(), "the notifications of a tool", func() {
		defer close(done)
		for {
			select {
			case n := <-s.notifications:
				s.notify(ctx, n)
			case <-over: // a goroutine that the handler has left may send more
				for range len(s.notifications) {
					s.notify(ctx, <-s.notifications)
				}
				return
			}
		}
	})
	return func() {
		close(over)
		<-done
	}
}

// notify passes on a notification.
func (s *runSession) notify(ctx context.Context, n mcp.JSONRPCNotification) {
	if n.Method != "notifications/progress" {
		gateway.WarnOnce(s.adoptions.tasks, "a message of a handler is dropped, because a task cannot carry it: "+
			"use the methods of the task that mcptask.FromContext returns, such as Message, or the program's own log", "tool", s.tool, "method", n.Method)
		return
	}
	var progress struct {
		Progress, Total float64
		Message         string
	}
	data, err := json.Marshal(n.Params)
	if err == nil {
		err = json.Unmarshal(data, &progress)
	}
	if err != nil {
		gateway.WarnOnce(s.adoptions.tasks, "a handler has sent malformed progress, which is dropped", "tool", s.tool, "error", err)
		return
	}
	s.task.Progress(ctx, progress.Progress, progress.Total, progress.Message)
}

// RequestElicitation implements server.SessionWithElicitation.
func (s *runSession) RequestElicitation(ctx context.Context, request mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	params := request.Params
	schema, err := json.Marshal(params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	step, result := nameStep("elicit", params.Message, schema), &mcp.ElicitationResult{}
	if params.Mode == mcp.ElicitationModeURL {
		err = s.task.AskURL(ctx, step, params.Message, params.URL)
	} else {
		var content map[string]any
		content, err = mcptask.Ask[map[string]any](ctx, s.task, mcptask.InputSpec{Schema: string(schema)}, step, params.Message)
		result.Content = content
	}
	switch {
	case err == nil:
		result.Action = mcp.ElicitationResponseActionAccept
	case errors.Is(err, mcptask.ErrDeclined):
		result.Action, result.Content = mcp.ElicitationResponseActionDecline, nil
	case errors.Is(err, mcptask.ErrDismissed):
		result.Action, result.Content = mcp.ElicitationResponseActionCancel, nil
	default:
		return nil, err
	}
	return result, nil
}

// RequestSampling implements server.SessionWithSampling. It leaves out wishes that a client may ignore anyway.
func (s *runSession) RequestSampling(ctx context.Context, request mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	if len(request.Tools) > 0 {
		return nil, fmt.Errorf("a run of the tool %q cannot offer tools to the client's model: leave out Tools", s.tool)
	}
	data, err := json.Marshal(request.CreateMessageParams)
	if err != nil {
		return nil, err
	}
	var sample mcptask.SampleRequest
	if err := json.Unmarshal(data, &sample); err != nil {
		return nil, fmt.Errorf("a run of the tool %q cannot send this sampling request: %w", s.tool, err)
	}
	answer, err := s.task.Sample(ctx, nameStep("sample", sample.SystemPrompt, data), sample)
	if err != nil {
		return nil, err
	}
	result := &mcp.CreateMessageResult{}
	if data, err = json.Marshal(answer); err == nil {
		err = json.Unmarshal(data, result)
	}
	if err == nil {
		result.Content, err = mcp.ParseSamplingContent(result.Content)
	}
	return result, err
}

// ListRoots implements server.SessionWithRoots.
func (s *runSession) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	roots, err := s.task.Roots(ctx, "roots")
	if err != nil {
		return nil, err
	}
	result := &mcp.ListRootsResult{Roots: []mcp.Root{}}
	for _, root := range roots {
		result.Roots = append(result.Roots, mcp.Root{URI: root.URI, Name: root.Name})
	}
	return result, nil
}

// nameStep names the step of a question. mcp-go asks several questions at once, in any order. So the name depends on the
// question, and a later run gets the answer that belongs to it.
func nameStep(kind, message string, more []byte) string {
	sum := sha256.Sum256(append([]byte(message+"\x00"), more...))
	return kind + "-" + hex.EncodeToString(sum[:4])
}
