package wiretest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// The functions below speak the proposal SEP-1686 over HTTP, in literal JSON.

const (
	ProposalTask    = "modelcontextprotocol.io/task"
	ProposalRelated = "modelcontextprotocol.io/related-task"
	ProposalCreated = "notifications/tasks/created"
	// BeforeTasks is a revision without tasks.
	BeforeTasks = "2025-06-18"
)

// WithProposal returns the options of a server that speaks the proposal and the released revisions.
func WithProposal() taskserver.Options {
	return taskserver.Options{Revisions: []string{mcptask.RevisionSEP1686, mcptask.Revision20251125, mcptask.Revision20260728}}
}

// ProposalMeta returns the metadata that asks for a task.
func ProposalMeta(id string) map[string]any {
	return map[string]any{ProposalTask: map[string]any{"taskId": id}, "progressToken": "token of " + id}
}

// Proposed is an open call: its stream and its ID.
type Proposed struct {
	*Feed

	ID int64
}

// Propose calls a tool as a task, and reads the announcement of the task.
func (p *Peer) Propose(id, tool string, arguments map[string]any) *Proposed {
	p.T.Helper()
	c := p.ProposeWith(ProposalMeta(id), tool, arguments)
	quoted, _ := json.Marshal(id) // a string always marshals
	want := fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"_meta":{%q:{"taskId":%s}}}}`, ProposalCreated, ProposalRelated, quoted)
	if m := c.Next(); !SameJSON(m.Text, want) {
		p.T.Fatalf("%s, want %s", m.Text, want)
	}
	return c
}

// ProposeWith calls a tool with metadata.
func (p *Peer) ProposeWith(meta map[string]any, tool string, arguments map[string]any) *Proposed {
	p.T.Helper()
	if arguments == nil {
		arguments = map[string]any{}
	}
	f := p.Send("tools/call", map[string]any{"name": tool, "arguments": arguments, "_meta": meta})
	return &Proposed{f, p.IDs.Load()}
}

// NextAnswer returns the answer to the call, which must be the last message of the stream.
func (c *Proposed) NextAnswer() WireMessage {
	c.T.Helper()
	for {
		m := c.Next()
		if m.Method == "notifications/progress" {
			continue
		}
		if m.Method != "" || string(m.ID) != fmt.Sprint(c.ID) {
			c.T.Fatalf("not the answer: %s", m.Text)
		}
		if _, more := <-c.Messages; more {
			c.T.Error("the stream goes on after the answer")
		}
		return m
	}
}

// CancelCall sends notifications/cancelled for the call.
func (p *Peer) CancelCall(c *Proposed) {
	p.T.Helper()
	r := p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"enough"}}`, c.ID))
	if r.Status != http.StatusAccepted {
		p.T.Errorf("cancelled: %d %s", r.Status, r.Body)
	}
}

// CallUnchecked is Call for a message that only the tap checks: the peer's own check knows the
// session's revision only.
func (p *Peer) CallUnchecked(method string, params map[string]any) *Response {
	p.T.Helper()
	body, edits := p.Request(method, params)
	return p.Post(body, edits...)
}

// CallProposed sends a task method as the proposal prescribes.
func (p *Peer) CallProposed(method, id string) *Response {
	p.T.Helper()
	return p.CallUnchecked(method, map[string]any{"taskId": id, "_meta": map[string]any{ProposalRelated: map[string]any{"taskId": id}}})
}

// UntilProposed polls until the task has a status.
func (p *Peer) UntilProposed(id, status string) *Response {
	p.T.Helper()
	return AwaitStatus(p.T, func() *Response { return p.CallProposed("tasks/get", id) }, status)
}

// ProposalTaskID returns the ID in a message's related-task metadata.
func ProposalTaskID(t testing.TB, message []byte) string {
	t.Helper()
	var m struct {
		Params, Result struct {
			Meta map[string]struct{ TaskID string } `json:"_meta"`
		}
	}
	_ = json.Unmarshal(message, &m) // other metadata may not fit
	return m.Params.Meta[ProposalRelated].TaskID + m.Result.Meta[ProposalRelated].TaskID
}

// NextQuestionOf returns the next message other than progress. It fails the test unless that is a
// question of the task.
func (c *Proposed) NextQuestionOf(id string) WireMessage {
	c.T.Helper()
	m := c.Next()
	for m.Method == "notifications/progress" {
		m = c.Next()
	}
	if m.Method == "" || m.ID == nil || ProposalTaskID(c.T, []byte(m.Text)) != id {
		c.T.Fatalf("no question of %s: %s", id, m.Text)
	}
	return m
}

// OnlyPatterns and WithPatterns are the revisions of a server that speaks the guide's tasks, alone
// or beside the released revisions.
var (
	OnlyPatterns = []string{wirecheck.Patterns}
	WithPatterns = []string{LegacyRevision, wirecheck.Patterns, ModernRevision}
)

// The tests of several revisions see one task through each of them, as the same principal.

// Number returns the number in the result at a path, or -1 for null.
func (r *Response) Number(path ...string) int64 {
	r.T.Helper()
	n, ok := r.Get(path...).(json.Number)
	if !ok {
		return -1
	}
	value, err := n.Int64()
	if err != nil {
		r.T.Fatal(err)
	}
	return value
}
