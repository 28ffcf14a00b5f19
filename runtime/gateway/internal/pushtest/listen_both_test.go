package pushtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestListenToBoth checks that a subscription to tasks and to other notifications gets the tasks alone, and that the
// acknowledgement says so.
func TestListenToBoth(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-63", "E-68")
	bubble.Test(t, func(t *testing.T) {
		url, d := listening(t, wiretest.Setup{})
		p := modernPeer(t, url)
		id := d.StartTask(p)
		f := subscribe(p, map[string]any{"taskIds": []string{id, "made-up"}, "toolsListChanged": true}, "taskIds:[%s]", id)
		f.NextTask()
		d.Tell(id, "done")
		wantTask(f, "completed")
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
	if got := wiretest.Dig(t, p.Hear(of(t, "sdk", ack)), "params", "notifications"); fmt.Sprint(got) != fmt.Sprintf("map[taskIds:[%s]]", other) {
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
	for _, id := range []string{"x", "sdk", "held"} {
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
	if err := p.Close(); err != nil {
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
