package pushtest

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestListenMerged checks a subscription to tasks and to notifications of the SDK. The client gets
// one acknowledgement, one stream and one end.
func TestListenMerged(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-63", "E-68")
	for _, jsonReplies := range []bool{false, true} {
		var sdk *mcp.Server
		url, d := listening(t, wiretest.Setup{HTTP: wiretest.HTTPOptions(jsonReplies), SDK: func(s *mcp.Server) { sdk = s }})
		change := func(f *wiretest.Feed) {
			mcp.AddTool(sdk, &mcp.Tool{Name: "later"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
			if m := f.Next(); m.Method != "notifications/tools/list_changed" {
				f.T.Errorf("%s", m.Text)
			}
		}
		t.Run(fmt.Sprint("both, json=", jsonReplies), func(t *testing.T) {
			p := modernPeer(t, url)
			id := d.StartTask(p)
			f := subscribe(p, map[string]any{"taskIds": []string{id, "made-up"}, "toolsListChanged": true, "promptsListChanged": true},
				"taskIds:[%s] toolsListChanged:true", id)
			f.NextTask()
			change(f)
			d.Tell(id, "one")
			f.NextTask()
			d.Tell(id, "done")
			wantTask(f, "completed")
			f.WantSilence() // the SDK's part goes on
			change(f)
			f.Stop()
		})
		t.Run(fmt.Sprint("the SDK agrees to nothing, json=", jsonReplies), func(t *testing.T) {
			p := modernPeer(t, url)
			id := d.StartTask(p)
			f := subscribe(p, map[string]any{"taskIds": []string{id}, "promptsListChanged": true}, "taskIds:[%s]", id)
			f.NextTask()
			f.WantSilence() // its answer is held back
			d.Tell(id, "done")
			wantTask(f, "completed")
			f.WantEnd()
			f, _ = p.Subscribe(map[string]any{"taskIds": []string{"made-up"}, "promptsListChanged": true})
			f.WantEnd()
		})
	}
}

// TestListenMergedRefused checks that the client gets the SDK's refusal.
func TestListenMergedRefused(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := listening(t, wiretest.Setup{})
		p := modernPeer(t, url)
		id := p.Create("driven", nil)
		for _, filter := range []map[string]any{
			{"taskIds": []string{id}, "toolsListChanged": "yes"},
			{"taskIds": []string{id}, "resourceSubscriptions": 5},
		} {
			p.Call("subscriptions/listen", map[string]any{"notifications": filter}).Want(http.StatusBadRequest, wiretest.InvalidParams)
		}
		r := p.Call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{id}, "toolsListChanged": true}}, wiretest.JSONOnly)
		if r.Status != http.StatusBadRequest {
			t.Errorf("%d %s", r.Status, r.Body)
		}
		// Kinds with the value false or an empty list are not requested.
		f, _ := p.Subscribe(map[string]any{"taskIds": []string{"made-up"}, "toolsListChanged": false, "resourceSubscriptions": []string{}})
		f.WantEnd()
	})
}

const listenMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// of returns a function that reports if a message belongs to the subscription.
func of(t *testing.T, id any, method string) func(map[string]any) bool {
	return func(m map[string]any) bool {
		return m["method"] == method && wiretest.Dig(t, m, "params", "_meta", "io.modelcontextprotocol/subscriptionId") == id
	}
}

// TestStdioListen checks that over standard input and output all subscriptions share one channel.
func TestStdioListen(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-64", "E-65", "E-68")
	p := wiretest.NewPipes(t)
	const ack, tasks = "notifications/subscriptions/acknowledged", "notifications/tasks"
	task := func(n float64, branch string) string {
		p.Say(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":%q},%s}}`, n, branch, listenMeta)
		id, _ := wiretest.Dig(t, p.Response(n), "result", "taskId").(string)
		return id
	}
	listen := func(id, filter string) {
		p.Say(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,%s}}`, id, filter, listenMeta)
	}
	endless, other := task(1, "endless"), task(2, "endless")
	listen(`"x"`, fmt.Sprintf(`{"taskIds":[%q,"made-up"]}`, endless))
	if got := wiretest.Dig(t, p.Hear(of(t, "x", ack)), "params", "notifications", "taskIds"); fmt.Sprint(got) != "["+endless+"]" {
		t.Errorf("agreed to %v", got)
	}
	if got := wiretest.Dig(t, p.Hear(of(t, "x", tasks)), "params", "status"); got != "working" {
		t.Errorf("%v", got)
	}
	listen(`7`, fmt.Sprintf(`{"taskIds":[%q,%q]}`, endless, other))
	p.Hear(of(t, 7.0, ack))
	listen(`"sdk"`, fmt.Sprintf(`{"taskIds":[%q],"toolsListChanged":true}`, other))
	if got := wiretest.Dig(t, p.Hear(of(t, "sdk", ack)), "params", "notifications"); fmt.Sprint(got) != fmt.Sprintf("map[taskIds:[%s] toolsListChanged:true]", other) {
		t.Errorf("agreed to %v", got)
	}
	listen(`"held"`, fmt.Sprintf(`{"taskIds":[%q],"promptsListChanged":true}`, other))
	if got := wiretest.Dig(t, p.Hear(of(t, "held", ack)), "params", "notifications"); fmt.Sprint(got) != fmt.Sprintf("map[taskIds:[%s]]", other) {
		t.Errorf("agreed to %v", got)
	}
	listen(`"gone"`, fmt.Sprintf(`{"taskIds":[%q],"toolsListChanged":true}`, other))
	p.Hear(of(t, "gone", tasks))

	// The client ends some subscriptions.
	p.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	p.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gone"}}`)
	p.Say(`{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":%q,%s}}`, other, listenMeta)
	if got := wiretest.Dig(t, p.Response(3), "result", "status"); got != "working" {
		t.Errorf("%v", got)
	}
	time.Sleep(time.Second) // messages that were on their way have come
	for drained := false; !drained; {
		select {
		case m := <-p.Lines:
			p.Early = append(p.Early, m)
		default:
			drained = true
		}
	}
	p.Early = nil

	// The other subscriptions report the end.
	for i, id := range []string{endless, other} {
		p.Say(`{"jsonrpc":"2.0","id":%d,"method":"tasks/cancel","params":{"taskId":%q,%s}}`, 10+i, id, listenMeta)
	}
	for _, id := range []string{"x", "sdk", "held"} {
		for wiretest.Dig(t, p.Hear(of(t, id, tasks)), "params", "status") != "cancelled" {
		}
	}
	for _, id := range []string{"x", "held"} {
		m := p.Hear(func(m map[string]any) bool { return m["id"] == id })
		if wiretest.Dig(t, m, "result", "resultType") != "complete" || wiretest.Dig(t, m, "result", "_meta", "io.modelcontextprotocol/subscriptionId") != id {
			t.Errorf("%v", m)
		}
	}
	p.Say(`{"jsonrpc":"2.0","id":20,"method":"subscriptions/listen","params":{"notifications":{"taskIds":[]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if code := wiretest.Dig(t, p.Response(20), "error", "code"); code != float64(wiretest.MissingCapability) {
		t.Errorf("%v", code)
	}
	time.Sleep(50 * time.Millisecond)
	if err := p.Close(); err != nil { // "sdk" goes on
		t.Fatal(err)
	}
	for m := range p.Lines {
		p.Early = append(p.Early, m)
	}
	for _, m := range p.Early {
		for _, id := range []any{7.0, "gone"} {
			if m["id"] == id || m["params"] != nil && fmt.Sprint(wiretest.Dig(t, m, "params", "_meta")) == fmt.Sprintf("map[io.modelcontextprotocol/subscriptionId:%v]", id) {
				t.Errorf("after the client has left: %v", m)
			}
		}
	}
	if err := p.Cmd.Wait(); err != nil {
		t.Errorf("the server did not end in order: %v", err)
	}
}
