package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// callInSession forwards a tools/call of a session. If the tool is ours, it opens a flow for it.
func (g *Gateway) callInSession(x exchange, s *session, caller taskserver.Caller) {
	m := x.message()
	tool, name := g.findTool(m)
	d := g.findRevision(s, caller, m)
	if tool == nil {
		// The SDK's own tools never become tasks. The revisions that were not released ask for a task in other members.
		if d != nil && (m.Params.Has("task") || d.Revision() != mcptask.Revision20251125) {
			none := mcptask.ToolSpec{Name: name, Policy: mcptask.Policy{Task: mcptask.TaskForbidden}}
			if _, err := d.Negotiate(none, false, m.Params); err != nil {
				x.refuse(refusedRequest, wireError(err))
				return
			}
		}
		x.forward(nil)
		return
	}
	raw, silent := m.Params, d == nil
	if silent { // older revisions have no tasks and ignore the member
		d, raw = g.unofficial.tasklessRevision(g.legacy), raw.Without("task")
	} else {
		caller.Revision = d.Revision()
	}
	call, err := d.Negotiate(*tool, fallback.Concerns(g.server, tool.Name), raw)
	if err != nil {
		refusal := wireError(err)
		if silent {
			refusal = g.nameTaskRevisions(*tool, caller.Revision, refusal)
		}
		x.refuse(refusedRequest, refusal)
		return
	}
	call = g.unofficial.bindKey(caller, call)
	call.Unattended, call.Trace = m.isUnattended(), x.trace()
	send, isOpen := x.openCall()
	call = fallback.Plan(g.server, caller, *tool, call, s != nil && s.portable != nil && isOpen)
	if s != nil && s.portable != nil && call.Mode == taskserver.ModeTask && slices.Contains(s.canAsk, "elicitation/create") {
		call.Later = true // the task asks the tool's first questions
	}
	var carrier fallback.Carrier
	if s != nil {
		carrier = g.newCarrier(x, s, d, send, isOpen)
		if s.portable == nil || call.Mode == taskserver.ModePlain && !s.portable.rebuilt {
			call.Ask = g.newAsk(x, s, caller, send, isOpen)
		}
	}
	flow := g.newCallFlow(x, d, caller, *tool, call, carrier)
	flow.Related = func(taskID string) map[string]any {
		return d.Related(taskstore.Record{ID: taskID, ExternalID: call.ExternalID})
	}
	if s != nil {
		g.announceTask(flow, s, d)
	}
	g.unofficial.waitForEnd(x, flow, s, d)
	x.forward(flow)
}

// announceTask delays messages about the task of a call until the call's reply is written.
func (g *Gateway) announceTask(flow *Flow, s *session, d protocol.Teller) {
	flow.Ended = s.ended
	flow.announced = &announcement{then: func(task string) { g.mailbox(s).SettleAfter(task, settleDelay) }}
	encode := flow.Encode
	flow.Encode = func(reply taskserver.CallReply) (json.RawMessage, error) {
		if reply.Task != nil {
			g.mailbox(s).KnowUnsettled(d, *reply.Task)
			flow.announced.noteTask(reply.Task.ID)
		}
		return encode(reply)
	}
}

// callModern forwards a tools/call of 2026-07-28. If the tool is ours, it opens a flow for it.
func (g *Gateway) callModern(x exchange, caller taskserver.Caller) {
	m := x.message()
	tool, _ := g.findTool(m)
	if tool == nil {
		x.forward(nil)
		return
	}
	caller.Client = readClient(m.meta.Client)
	if err := x.checkVersion(g.modern.Revision()); err != nil {
		x.refuse(refusedRequest, err)
		return
	}
	params := m.Params
	if !g.inRequests { // this server has no tasks here, so ignore the client's declaration
		params = params.Without("_meta")
	}
	call, err := g.modern.Negotiate(*tool, fallback.Concerns(g.server, tool.Name), params)
	if err != nil {
		refusal := wireError(err)
		if !g.inRequests {
			refusal = g.nameTaskRevisions(*tool, g.modern.Revision(), refusal)
		}
		x.refuse(refusedRequest, refusal)
		return
	}
	call.Unattended, call.Trace = m.isUnattended(), x.trace()
	call = fallback.Plan(g.server, caller, *tool, call, false)
	flow := g.newCallFlow(x, g.modern, caller, *tool, call, nil)
	flow.Stateless = true
	x.forward(flow, g.withholdParams(flow, m.Params)...)
}

// withholdParams returns edits that remove from a call the params that the SDK cannot read. The flow keeps the
// removed parts.
//
// The SDK refuses malformed answers, which the gateway has already read (T-31). It also decodes the
// arguments for their headers. That takes seconds for a megabyte of tiny numbers and fails for very
// large numbers. So arguments that the server is going to refuse for their size, depth or numbers
// are withheld.
func (g *Gateway) withholdParams(flow *Flow, params *wire.Object) (edits []wire.Edit) {
	for _, name := range []string{"inputResponses", "requestState"} {
		if params.Has(name) {
			edits = append(edits, wire.Delete("params", name))
		}
	}
	arguments := params.Get("arguments")
	if len(arguments) > g.server.Options().Limits.Arguments || !validate.Bounded(arguments) {
		flow.withheld = arguments
		edits = append(edits, wire.Set(json.RawMessage("{}"), "params", "arguments"))
	}
	return edits
}

// nameTaskRevisions rewrites the refusal of a call that must be a task in a revision without tasks.
// Another declaration by the client would not help, so the message names the revisions that do have
// tasks.
func (s *speech) nameTaskRevisions(tool mcptask.ToolSpec, revision string, refusal *mcptask.Error) *mcptask.Error {
	if tool.Policy.Task == mcptask.TaskRequired && (refusal.Code == mcptask.CodeMethodNotFound || refusal.Code == spec.CodeMissingClientCapability) {
		refusal.Message = fmt.Sprintf("the tool %q must be called as a task: this server has no tasks in %s, only in %s",
			tool.Name, revision, strings.Join(s.names, ", "))
	}
	return refusal
}

// findTool returns the tool of a tools/call, which may be a fallback tool. If the tool is not ours, or if it was
// adopted from another server of the SDK, findTool returns nil and the name.
func (g *Gateway) findTool(m *message) (*mcptask.ToolSpec, string) {
	name, _ := m.Params.Text("name")
	spec, ok := g.server.Tool(name)
	if !ok {
		spec, ok = fallback.Tool(g.server, name)
	}
	if ok && g.config.FindBinder != nil {
		_, ok = g.config.FindBinder(name, taskserver.Caller{}, nil)
	}
	if !ok {
		return nil, name
	}
	return &spec, name
}

// newCallFlow returns the flow of a tools/call.
func (g *Gateway) newCallFlow(x exchange, d protocol.Server, caller taskserver.Caller, tool mcptask.ToolSpec, call taskserver.CallRequest, carrier fallback.Carrier) *Flow {
	flow := g.newFlow(d, caller, "tools/call")
	if g.config.FindBinder != nil {
		call.Bind, _ = g.config.FindBinder(tool.Name, caller, x.message().Params.Get("_meta"))
	}
	flow.Tool, flow.Call, flow.request = tool.Name, call, g.newCallInfo(x, caller, tool.Name)
	flow.Handle = fallback.Handle(x.context(), g.server, caller, tool.Name, call, carrier)
	flow.keeps = tool.Policy.OnLeave == mcptask.KeepOnLeave
	flow.extra = findExtraArguments(g.server, caller, tool)
	switch {
	case fallback.IsList(g.server, tool.Name):
		flow.Handle = g.countLists(caller, flow.Handle)
	case call.Task != "" || fallback.Helps(g.server, tool.Name):
		flow.Handle = g.countPolls(caller, flow.Handle)
	}
	flow.Encode = func(reply taskserver.CallReply) (json.RawMessage, error) {
		if reply.Task == nil || len(reply.Questions) > 0 {
			return d.InputRequired(reply)
		}
		return d.Created(protocol.ShowTask(g.server, caller, *reply.Task), tool)
	}
	return flow
}

// newListFlow returns the flow of a tools/list without a session. declares reports whether the
// client declared that it supports tasks.
func (g *Gateway) newListFlow(caller taskserver.Caller, declares bool) *Flow {
	flow := g.newFlow(g.modern, caller, "tools/list")
	decorate := flow.Decorate
	flow.Decorate = func(result json.RawMessage) (_ json.RawMessage, err error) {
		if result, err = decorate(result); err != nil {
			return nil, err
		}
		return fallback.List(g.server, caller, declares, result)
	}
	return flow
}

// declaresTasks reports whether a request without a session declares support for tasks.
func (g *Gateway) declaresTasks(params protocol.Params) bool {
	return g.inRequests && g.modern.Check(params) == nil
}

// newSessionListFlow returns the flow of a session's tools/list.
func (g *Gateway) newSessionListFlow(s *session, caller taskserver.Caller) *Flow {
	return &Flow{Caller: caller, Decorate: func(result json.RawMessage) (_ json.RawMessage, err error) {
		if s != nil {
			if result, err = g.declareTasks(caller, s.revision, "tools/list", result); err != nil {
				return nil, err
			}
		}
		return fallback.List(g.server, caller, false, result)
	}}
}

// newInitializeFlow returns the flow of an initialize request.
func (g *Gateway) newInitializeFlow(caller taskserver.Caller) *Flow {
	return &Flow{Caller: caller, Decorate: func(result json.RawMessage) (json.RawMessage, error) {
		var negotiated struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(result, &negotiated) // the SDK wrote it
		g.keepServerInfo(wire.NewObject(result).Get("serverInfo"))
		return g.declareTasks(caller, negotiated.ProtocolVersion, "initialize", result)
	}}
}

// newDiscoverFlow returns the flow of a server/discover. It declares tasks only if the gateway
// supports them without a session.
func (g *Gateway) newDiscoverFlow(caller taskserver.Caller) *Flow {
	method := spec.Discover
	if !g.inRequests {
		method = ""
	}
	flow := g.newFlow(g.modern, caller, method)
	decorate := flow.Decorate
	flow.Decorate = func(result json.RawMessage) (json.RawMessage, error) {
		g.keepServerInfo(wire.NewObject(result).Get("_meta", spec.MetaServerInfo))
		decorated, err := decorate(result)
		if err != nil {
			return nil, err
		}
		return g.listServed(decorated)
	}
	return flow
}

// newFlow returns the flow of a request whose result the revision completes.
func (g *Gateway) newFlow(d protocol.Server, caller taskserver.Caller, method string) *Flow {
	return &Flow{
		Caller: caller,
		Decorate: func(result json.RawMessage) (json.RawMessage, error) {
			return d.Decorate(g.server, caller, method, result)
		},
	}
}
