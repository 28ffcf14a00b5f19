package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// callInSession passes a tools/call of a session on, with its flow if the tool is ours.
func (g *Gateway) callInSession(x exchange, s *session, caller mcptask.Caller) {
	flow, refusal := g.legacyFlow(s, caller, x.message())
	if refusal != nil {
		x.refuse(refusedRequest, refusal)
		return
	}
	x.forward(flow)
}

// legacyFlow negotiates a tools/call of a session. No flow and no refusal is a
// call of none of our tools, to be passed on as it is.
func (g *Gateway) legacyFlow(s *session, caller mcptask.Caller, m *message) (*Flow, *mcptask.Error) {
	tool, name := g.tool(m)
	d := g.spoken(s, caller, m)
	if tool == nil {
		if d != nil { // a tool of the SDK's is never a task
			none := mcptask.ToolSpec{Name: name, Policy: mcptask.Policy{Task: mcptask.TaskForbidden}}
			if _, err := d.Negotiate(none, false, m.Params); err != nil {
				return nil, wireError(err)
			}
		}
		return nil, nil
	}
	raw, silent := m.Params, d == nil
	if silent { // the older revisions know no tasks: the member means nothing
		d, raw = g.plain(), raw.Without("task")
	} else {
		caller.Revision = d.Revision()
	}
	call, err := d.Negotiate(*tool, fallback.Concerns(g.server, tool.Name), raw)
	if err != nil {
		refusal := wireError(err)
		if silent {
			refusal = g.elsewhere(*tool, caller.Revision, refusal)
		}
		return nil, refusal
	}
	if call.ExternalID != "" && call.IdempotencyKey == call.ExternalID { // anonymous callers share their keys
		call.IdempotencyKey = caller.Named(call.ExternalID)
	}
	flow := g.callFlow(d, caller, *tool, call)
	flow.Related = func(taskID string) map[string]any {
		return d.Related(mcptask.Record{ID: taskID, ExternalID: call.ExternalID})
	}
	if s != nil {
		flow.Ended = s.ended
		flow.announced = &announcement{then: func(task string) { g.mailbox(s).SettleAfter(task, settling) }}
		encode := flow.Encode
		flow.Encode = func(reply mcptask.CallReply) (json.RawMessage, error) {
			if reply.Task != nil {
				g.mailbox(s).KnowUnsettled(d, *reply.Task)
				flow.announced.made(reply.Task.ID)
			}
			return encode(reply)
		}
	}
	g.prepare(flow, s, d, m)
	return flow, nil
}

// callModern passes a tools/call of 2026-07-28 on, with its flow if the tool is ours.
func (g *Gateway) callModern(x exchange, caller mcptask.Caller) {
	m := x.message()
	tool, _ := g.tool(m)
	if tool == nil {
		x.forward(nil)
		return
	}
	if err := x.checkVersion(g.modern.Revision()); err != nil {
		x.refuse(refusedRequest, err)
		return
	}
	params := m.Params
	if !g.without { // whatever is declared
		params = params.Without("_meta")
	}
	call, err := g.modern.Negotiate(*tool, fallback.Concerns(g.server, tool.Name), params)
	if err != nil {
		refusal := wireError(err)
		if !g.without {
			refusal = g.elsewhere(*tool, g.modern.Revision(), refusal)
		}
		x.refuse(refusedRequest, refusal)
		return
	}
	flow := g.callFlow(g.modern, caller, *tool, call)
	flow.Stateless = true
	x.forward(flow, g.withhold(flow, m.Params)...)
}

// withhold returns the edits that keep from the SDK what it would suffer from. The flow has it all.
//
// The SDK refuses junk among the answers, which have been read (T-31). It decodes arguments for
// their headers, which takes seconds for a million bytes of tiny numbers and fails for large ones:
// it gets none that the server is going to refuse for their size, their depth or their numbers.
func (g *Gateway) withhold(flow *Flow, params *wire.Object) (edits []wire.Edit) {
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

// elsewhere is the refusal of a call that has to be a task, in a revision without:
// what the caller would have to add there changes nothing.
func (s *speech) elsewhere(tool mcptask.ToolSpec, revision string, refusal *mcptask.Error) *mcptask.Error {
	if tool.Policy.Task == mcptask.TaskRequired && (refusal.Code == mcptask.CodeMethodNotFound || refusal.Code == mcptask.CodeMissingClientCapability) {
		refusal.Message = fmt.Sprintf("the tool %q must be called as a task: this server has none in %s, but in %s",
			tool.Name, revision, strings.Join(s.names, ", "))
	}
	return refusal
}

// tool finds the tool of a tools/call, a fallback tool too. It returns nil, and the name, if the
// tool is none of ours.
func (g *Gateway) tool(m *message) (*mcptask.ToolSpec, string) {
	name, _ := m.Params.Text("name")
	spec, ok := g.server.Tool(name)
	if !ok {
		spec, ok = fallback.Tool(g.server, name)
	}
	if !ok {
		return nil, name
	}
	return &spec, name
}

// callFlow is the flow of a tools/call.
func (g *Gateway) callFlow(d dialect.Server, caller mcptask.Caller, tool mcptask.ToolSpec, call mcptask.CallRequest) *Flow {
	flow := g.decorated(d, caller, "tools/call")
	flow.Tool, flow.Call = tool.Name, call
	flow.Handle = fallback.Handle(g.server, caller, tool.Name, call)
	if fallback.Helps(g.server, tool.Name) {
		flow.Handle = g.polling(caller, flow.Handle)
	}
	flow.Encode = func(reply mcptask.CallReply) (json.RawMessage, error) {
		if reply.Task == nil {
			return d.InputRequired(reply)
		}
		return d.Created(*reply.Task, tool)
	}
	return flow
}

// listed is the flow of a tools/list without a session; declares says whether the
// caller has declared that it takes tasks.
func (g *Gateway) listed(caller mcptask.Caller, declares bool) *Flow {
	flow := g.decorated(g.modern, caller, "tools/list")
	decorate := flow.Decorate
	flow.Decorate = func(result json.RawMessage) (_ json.RawMessage, err error) {
		if result, err = decorate(result); err != nil {
			return nil, err
		}
		return fallback.List(g.server, declares, result)
	}
	return flow
}

// declares reports whether a request without a session says that its client takes tasks.
func (g *Gateway) declares(meta meta) bool {
	return g.without && g.modern.Check(meta.Capabilities) == nil
}

// sessionList is the flow of a session's tools/list.
func (g *Gateway) sessionList(s *session, caller mcptask.Caller) *Flow {
	return &Flow{Caller: caller, Decorate: func(result json.RawMessage) (_ json.RawMessage, err error) {
		if s != nil {
			if result, err = g.declare(caller, s.revision, "tools/list", result); err != nil {
				return nil, err
			}
		}
		return fallback.List(g.server, false, result)
	}}
}

// initialized is the flow of an initialize.
func (g *Gateway) initialized(caller mcptask.Caller) *Flow {
	return &Flow{Caller: caller, Decorate: func(result json.RawMessage) (json.RawMessage, error) {
		var negotiated struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(result, &negotiated) // it is the SDK's own
		return g.declare(caller, negotiated.ProtocolVersion, "initialize", result)
	}}
}

// discovered returns the flow of a server/discover. It declares tasks only if the
// gateway speaks them without a session.
func (g *Gateway) discovered(caller mcptask.Caller) *Flow {
	method := "server/discover"
	if !g.without {
		method = ""
	}
	return g.decorated(g.modern, caller, method)
}

// decorated is the flow of a request whose result gets additions.
func (g *Gateway) decorated(d dialect.Server, caller mcptask.Caller, method string) *Flow {
	return &Flow{
		Caller: caller,
		Decorate: func(result json.RawMessage) (json.RawMessage, error) {
			return d.Decorate(g.server, caller, method, result)
		},
	}
}
