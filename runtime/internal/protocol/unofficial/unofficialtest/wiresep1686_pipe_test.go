package unofficialtest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The proposal SEP-1686 on pipes, as literal lines.

// newProposedPipe connects to a server that speaks the proposal, in a session of a
// protocol version.
func newProposedPipe(t *testing.T, protocol string) (p *wiretest.Piped, d *wiretest.Driven) {
	t.Helper()
	d = &wiretest.Driven{}
	options := wiretest.WithProposal()
	options.Limits = wiretest.NoPollLimits
	tasks, err := taskserver.New(options, d.Tools(), wiretest.ExtraTools(), wiretest.AskTools())
	if err != nil {
		t.Fatal(err)
	}
	p = wiretest.PipeTo(t, tasks, 100)
	t.Cleanup(func() { _ = tasks.Close() })
	p.Ask(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, protocol, wiretest.AllCapabilities)
	p.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p, d
}

const relatedT = `"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}}`

// TestProposalPipe checks the whole life of a task on a pipe.
func TestProposalPipe(t *testing.T) {
	rules.Covers(t, "A-06", "A-08", "A-09", "A-24", "A-25", "A-37", "A-38", "A-39")
	t.Parallel()
	for _, protocol := range []string{wiretest.BeforeTasks, wiretest.LegacyRevision} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				p, d := newProposedPipe(t, protocol)
				task := internal(gosdk.Local, "T")
				p.Exchange(`{"jsonrpc":"2.0","method":"notifications/tasks/created","params":{`+relatedT+`}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"driven","arguments":{},"_meta":{"modelcontextprotocol.io/task":{"taskId":"T","keepAlive":60000},"progressToken":"p"}}}`)
				d.Tell(task, "begun")
				p.WantLines(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":0,"message":"begun",` + relatedT + `}}`)
				d.Tell(task, "ask")
				var question struct {
					ID     json.RawMessage
					Method string
				}
				line := p.Hear()
				if err := json.Unmarshal([]byte(line), &question); err != nil || question.Method != "elicitation/create" || wiretest.ProposalTaskID(t, []byte(line)) != "T" {
					t.Fatal(line, err)
				}
				p.Exchange(`{"jsonrpc":"2.0","id":"g","result":{"taskId":"T","status":"input_required","keepAlive":3600000,"pollFrequency":20,`+relatedT+`}}`, `{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"T"}}`)
				p.Exchange(`{"jsonrpc":"2.0","id":"r","error":{"code":-32602,"message":"the task is input_required: only a completed one has a result"}}`, `{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":"T"}}`)
				p.Say(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"note":"n"}}}`, question.ID)
				d.Tell(task, "done")
				p.WantLines(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],` + relatedT + `}}`)
				p.Exchange(`{"jsonrpc":"2.0","id":"r","result":{"content":[{"type":"text","text":"done"}],`+relatedT+`}}`, `{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":"T",`+relatedT+`}}`)
				if list := p.Ask(`{"jsonrpc":"2.0","id":"l","method":"tasks/list"}`); !strings.Contains(list, `"tasks":[{"taskId":"T","status":"completed","keepAlive":3`) {
					t.Errorf("%s", list)
				}
				p.Exchange(`{"jsonrpc":"2.0","id":"d","result":{`+relatedT+`}}`, `{"jsonrpc":"2.0","id":"d","method":"tasks/delete","params":{"taskId":"T"}}`)
				p.Exchange(`{"jsonrpc":"2.0","id":"g","error":{"code":-32602,"message":"there is no task with that ID: this server keeps tasks in memory, so a restart loses them"}}`, `{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"T",`+relatedT+`}}`)
			})
		})
	}
}

// TestProposalPipeCancel checks notifications/cancelled on a pipe.
func TestProposalPipeCancel(t *testing.T) {
	rules.Covers(t, "A-16", "A-21", "A-40", "A-42", "A-43", "A-46")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		p, d := newProposedPipe(t, wiretest.BeforeTasks)
		call := func(id int, tool string) {
			p.Say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"modelcontextprotocol.io/task":{"taskId":"T"}}}}`, id, tool)
		}
		created := `{"jsonrpc":"2.0","method":"notifications/tasks/created","params":{` + relatedT + `}}`
		call(1, "driven")
		p.WantLines(created)
		call(2, "driven")
		p.WantLines(`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"the task ID \"T\" is in use: choose another one for each call"}}`)
		d.Tell(internal(gosdk.Local, "T"), "ask")
		var question struct{ ID string }
		if line := p.Hear(); json.Unmarshal([]byte(line), &question) != nil || question.ID == "" {
			t.Fatal(line)
		}
		for _, id := range []string{`2`, `"1"`, `null`, `1`, `1`} { // the last one is over the limit
			p.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
		}
		// The server takes the question back. The call, which was cancelled, has no answer.
		if line := p.Hear(); !strings.Contains(line, `"notifications/cancelled"`) {
			t.Errorf("%s", line)
		}
		p.Say(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"note":"n"}}}`, question.ID)
		p.Exchange(`{"jsonrpc":"2.0","id":"g","result":{"taskId":"T","status":"cancelled","keepAlive":3600000,"pollFrequency":20,`+relatedT+`}}`, `{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"T"}}`)
		select {
		case d.TaskChannel(internal(gosdk.Local, "T")) <- "done":
			t.Error("the handler goes on")
		case <-time.After(50 * time.Millisecond):
		}
		p.Exchange(`{"jsonrpc":"2.0","id":"d","result":{`+relatedT+`}}`, `{"jsonrpc":"2.0","id":"d","method":"tasks/delete","params":{"taskId":"T"}}`)
		call(3, "locked") // the ID is free again
		p.WantLines(created, `{"jsonrpc":"2.0","id":3,"error":{"code":4055,"message":"the repository is locked","data":{"by":"somebody","since":[1,2]}}}`)
		p.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
		p.Exchange(`{"jsonrpc":"2.0","id":"g","result":{"taskId":"T","status":"failed","error":"the repository is locked","keepAlive":86400000,"pollFrequency":100,`+relatedT+`}}`, `{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"T"}}`)
	})
}
