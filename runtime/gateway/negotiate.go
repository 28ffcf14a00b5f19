package gateway

import (
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
)

// legacyFlow negotiates a tools/call of 2025-11-25 or before; tasks says that
// the session knows tasks. No flow and no refusal is a call of none of our
// tools, to be passed on as it is.
func (g *Gateway) legacyFlow(s *session, caller mcptask.Caller, m *message, tasks bool) (*Flow, *mcptask.Error) {
	tool, params := g.tool(m)
	if tool == nil {
		if tasks && has(m.Params, "task") {
			return nil, mcptask.Errorf(mcptask.CodeMethodNotFound, "the tool %q cannot be called as a task", params.Name)
		}
		return nil, nil
	}
	raw := m.Params
	if !tasks { // the older revisions know no tasks: the member means nothing
		raw = without(raw, "task")
	}
	call, err := g.legacy.Negotiate(*tool, fallback.Concerns(g.server, tool.Name), raw)
	if err != nil {
		return nil, wireError(err)
	}
	flow := g.callFlow(g.legacy, caller, *tool, call)
	if s != nil {
		flow.Ended = s.ended
		encode := flow.Encode
		flow.Encode = func(reply mcptask.CallReply) (json.RawMessage, error) {
			if reply.Task != nil {
				g.questions.created(s, *reply.Task)
			}
			return encode(reply)
		}
	}
	return flow, nil
}

// modernFlow negotiates a tools/call of 2026-07-28 of one of our tools, and
// returns the call as it is to be passed on.
func (g *Gateway) modernFlow(caller mcptask.Caller, m *message, line []byte) (*Flow, []byte, *mcptask.Error) {
	tool, _ := g.tool(m)
	call, err := g.modern.Negotiate(*tool, fallback.Concerns(g.server, tool.Name), m.Params)
	if err == nil {
		line, err = dropAnswers(m, line)
	}
	if err != nil {
		return nil, nil, wireError(err)
	}
	return g.callFlow(g.modern, caller, *tool, call), line, nil
}

// dropAnswers is a call as it is passed on: without its answers, which have
// been read, since an SDK refuses the junk that may be among them (T-31).
func dropAnswers(m *message, call []byte) ([]byte, error) {
	if !has(m.Params, "inputResponses") && !has(m.Params, "requestState") {
		return call, nil
	}
	params := without(without(m.Params, "inputResponses"), "requestState")
	return setMember(call, []string{"params"}, params)
}

// tool finds the tool of a tools/call, a fallback tool too; nil is none of ours.
func (g *Gateway) tool(m *message) (*mcptask.ToolSpec, callParams) {
	var params callParams
	if json.Unmarshal(m.Params, &params) != nil {
		return nil, params
	}
	spec, ok := g.server.Tool(params.Name)
	if !ok {
		spec, ok = fallback.Tool(g.server, params.Name)
	}
	if !ok {
		return nil, params
	}
	return &spec, params
}

type callParams struct {
	Name string `json:"name"`
}

// callFlow is the flow of a tools/call.
func (g *Gateway) callFlow(d dialect.Server, caller mcptask.Caller, tool mcptask.ToolSpec, call mcptask.CallRequest) *Flow {
	flow := g.decorated(d, caller, "tools/call")
	flow.Tool, flow.Call = tool.Name, call
	flow.Handle = fallback.Handle(g.server, caller, tool.Name, call)
	flow.Encode = func(reply mcptask.CallReply) (json.RawMessage, error) {
		if reply.Task == nil {
			return d.InputRequired(reply)
		}
		return d.Created(*reply.Task, tool)
	}
	return flow
}

// listed is the flow of a tools/list; tasks says whether the revision has tasks,
// declares whether the caller has declared that it takes them.
func (g *Gateway) listed(d dialect.Server, caller mcptask.Caller, tasks, declares bool) *Flow {
	flow := g.decorated(d, caller, "tools/list")
	decorate := flow.Decorate
	flow.Decorate = func(result json.RawMessage) (_ json.RawMessage, err error) {
		if tasks {
			if result, err = decorate(result); err != nil {
				return nil, err
			}
		}
		return fallback.List(g.server, declares, result)
	}
	return flow
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

// has says whether an object has a member.
func has(object json.RawMessage, name string) bool {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members)
	_, ok := members[name]
	return ok
}

// without is the object less one member.
func without(object json.RawMessage, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return object
	}
	delete(members, name)
	data, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return data
}
