package gosdk_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// One subscription to tasks and to what the SDK serves: one acknowledgement, one
// stream, one end.
func TestListenMerged(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-63", "E-68")
	for _, jsonReplies := range []bool{false, true} {
		var sdk *mcp.Server
		url, d := listening(t, setup{http: httpOptions(jsonReplies), sdk: func(s *mcp.Server) { sdk = s }})
		change := func() {
			mcp.AddTool(sdk, &mcp.Tool{Name: "later"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
		}
		t.Run(fmt.Sprint("both, json=", jsonReplies), func(t *testing.T) {
			p := newPeer(t, url, modernRevision, "")
			id := d.begin(p)
			f, agreed := p.subscribe(map[string]any{"taskIds": []string{id, "made-up"}, "toolsListChanged": true, "promptsListChanged": true})
			if fmt.Sprint(agreed) != fmt.Sprintf("map[taskIds:[%s] toolsListChanged:true]", id) {
				t.Errorf("agreed to %v", agreed)
			}
			f.task()
			change()
			if m := f.next(); m.Method != "notifications/tools/list_changed" {
				t.Errorf("%s", m.text)
			}
			d.say(id, "one")
			f.task()
			d.say(id, "done")
			if f.task()["status"] != "completed" {
				t.Error("not completed")
			}
			f.silent() // the SDK's part goes on
			change()
			if m := f.next(); m.Method != "notifications/tools/list_changed" {
				t.Errorf("%s", m.text)
			}
			f.stop()
		})
		t.Run(fmt.Sprint("the SDK agrees to nothing, json=", jsonReplies), func(t *testing.T) {
			p := newPeer(t, url, modernRevision, "")
			id := d.begin(p)
			f, agreed := p.subscribe(map[string]any{"taskIds": []string{id}, "promptsListChanged": true})
			if fmt.Sprint(agreed) != fmt.Sprintf("map[taskIds:[%s]]", id) {
				t.Errorf("agreed to %v", agreed)
			}
			f.task()
			f.silent() // its answer is held back
			d.say(id, "done")
			if f.task()["status"] != "completed" {
				t.Error("not completed")
			}
			f.ends()
			f, _ = p.subscribe(map[string]any{"taskIds": []string{"made-up"}, "promptsListChanged": true})
			f.ends()
		})
	}
}

// What the SDK refuses is refused.
func TestListenMergedRefused(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := listening(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		id := p.create("driven", nil)
		for _, filter := range []map[string]any{
			{"taskIds": []string{id}, "toolsListChanged": "yes"},
			{"taskIds": []string{id}, "resourceSubscriptions": 5},
		} {
			p.call("subscriptions/listen", map[string]any{"notifications": filter}).want(http.StatusBadRequest, invalidParams)
		}
		r := p.call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{id}, "toolsListChanged": true}}, jsonOnly)
		if r.status != http.StatusBadRequest {
			t.Errorf("%d %s", r.status, r.body)
		}
		// Kinds that are asked for and not wanted are none.
		f, _ := p.subscribe(map[string]any{"taskIds": []string{"made-up"}, "toolsListChanged": false, "resourceSubscriptions": []string{}})
		f.ends()
	})
}

const listenMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// of is what belongs to a subscription.
func of(t *testing.T, id any, method string) func(map[string]any) bool {
	return func(m map[string]any) bool {
		return m["method"] == method && dig(t, m, "params", "_meta", "io.modelcontextprotocol/subscriptionId") == id
	}
}

// Over standard input and output all subscriptions share one channel.
func TestStdioListen(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-64", "E-65", "E-68")
	p := newPipes(t)
	const ack, tasks = "notifications/subscriptions/acknowledged", "notifications/tasks"
	task := func(n float64, branch string) string {
		p.say(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":%q},%s}}`, n, branch, listenMeta)
		id, _ := dig(t, p.response(n), "result", "taskId").(string)
		return id
	}
	listen := func(id, filter string) {
		p.say(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,%s}}`, id, filter, listenMeta)
	}
	endless, other := task(1, "endless"), task(2, "endless")
	listen(`"x"`, fmt.Sprintf(`{"taskIds":[%q,"made-up"]}`, endless))
	if got := dig(t, p.hear(of(t, "x", ack)), "params", "notifications", "taskIds"); fmt.Sprint(got) != "["+endless+"]" {
		t.Errorf("agreed to %v", got)
	}
	if got := dig(t, p.hear(of(t, "x", tasks)), "params", "status"); got != "working" {
		t.Errorf("%v", got)
	}
	listen(`7`, fmt.Sprintf(`{"taskIds":[%q,%q]}`, endless, other))
	p.hear(of(t, 7.0, ack))
	listen(`"sdk"`, fmt.Sprintf(`{"taskIds":[%q],"toolsListChanged":true}`, other))
	if got := dig(t, p.hear(of(t, "sdk", ack)), "params", "notifications"); fmt.Sprint(got) != fmt.Sprintf("map[taskIds:[%s] toolsListChanged:true]", other) {
		t.Errorf("agreed to %v", got)
	}
	listen(`"held"`, fmt.Sprintf(`{"taskIds":[%q],"promptsListChanged":true}`, other))
	if got := dig(t, p.hear(of(t, "held", ack)), "params", "notifications"); fmt.Sprint(got) != fmt.Sprintf("map[taskIds:[%s]]", other) {
		t.Errorf("agreed to %v", got)
	}
	listen(`"gone"`, fmt.Sprintf(`{"taskIds":[%q],"toolsListChanged":true}`, other))
	p.hear(of(t, "gone", tasks))

	// The client leaves some.
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gone"}}`)
	p.say(`{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":%q,%s}}`, other, listenMeta)
	if got := dig(t, p.response(3), "result", "status"); got != "working" {
		t.Errorf("%v", got)
	}
	time.Sleep(time.Second) // what was on its way has come
	for drained := false; !drained; {
		select {
		case m := <-p.lines:
			p.early = append(p.early, m)
		default:
			drained = true
		}
	}
	p.early = nil

	// The others hear of the end.
	for i, id := range []string{endless, other} {
		p.say(`{"jsonrpc":"2.0","id":%d,"method":"tasks/cancel","params":{"taskId":%q,%s}}`, 10+i, id, listenMeta)
	}
	for _, id := range []string{"x", "sdk", "held"} {
		for dig(t, p.hear(of(t, id, tasks)), "params", "status") != "cancelled" {
		}
	}
	for _, id := range []string{"x", "held"} {
		m := p.hear(func(m map[string]any) bool { return m["id"] == id })
		if dig(t, m, "result", "resultType") != "complete" || dig(t, m, "result", "_meta", "io.modelcontextprotocol/subscriptionId") != id {
			t.Errorf("%v", m)
		}
	}
	p.say(`{"jsonrpc":"2.0","id":20,"method":"subscriptions/listen","params":{"notifications":{"taskIds":[]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if code := dig(t, p.response(20), "error", "code"); code != float64(missingCapability) {
		t.Errorf("%v", code)
	}
	time.Sleep(50 * time.Millisecond)
	if err := p.close(); err != nil { // "sdk" goes on
		t.Fatal(err)
	}
	for m := range p.lines {
		p.early = append(p.early, m)
	}
	for _, m := range p.early {
		for _, id := range []any{7.0, "gone"} {
			if m["id"] == id || m["params"] != nil && fmt.Sprint(dig(t, m, "params", "_meta")) == fmt.Sprintf("map[io.modelcontextprotocol/subscriptionId:%v]", id) {
				t.Errorf("after the client has left: %v", m)
			}
		}
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the server did not end in order: %v", err)
	}
}
