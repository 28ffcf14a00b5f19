package siege

import (
	"bytes"
	"fmt"
	"strings"
)

// OpenSession is the initialize request of a session of 2025-11-25.
const OpenSession = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`

const (
	jsonHeads   = "POST /\nContent-Type: application/json\nAccept: application/json, text/event-stream\n"
	legacyHeads = jsonHeads + "Mcp-Session-Id: $SESSION\nMCP-Protocol-Version: 2025-11-25\n"
	fuzzMeta    = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
)

// Messages returns real exchanges and attacks, the seeds of fuzz targets. $DONE, $ASK, $BOUND and
// $VICTIM stand for tasks: one that has ended, one that asks with the step "step", one of
// "bound_ask", and one of another principal.
func Messages() []string {
	seeds := []string{
		OpenSession, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{%M}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%M}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick","arguments":{},"task":{"ttl":60000}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick","arguments":{"n":1},"_meta":{"progressToken":"p"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asks","arguments":{},"task":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"required","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task_status","arguments":{"token":"$DONE"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick","arguments":{},%M}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asks","arguments":{},"requestState":"{}","inputResponses":{"k":7},%M}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick","arguments":{"n":"x"},"task":{},%M}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"taskId":"$DONE"}}`, `{"jsonrpc":"2.0","id":"a","method":"tasks/result","params":{"taskId":"$DONE"}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/result","params":{"taskId":"$ASK"}}`, `{"jsonrpc":"2.0","id":"a","method":"tasks/cancel","params":{"taskId":"$ASK"}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/list","params":{"cursor":"AAAAAAAAAAAAAAAAAAAAAA"}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"taskId":"$VICTIM"}}`, `{"jsonrpc":"2.0","id":"a","method":"tasks/cancel","params":{"taskId":"$VICTIM",%M}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"taskId":"$ASK",%M}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/update","params":{"taskId":"$ASK","inputResponses":{"step":{"action":"accept","content":{"note":"n"}}},%M}}`,
		`{"jsonrpc":"2.0","id":"mcptask/$ASK/step","result":{"action":"accept","content":{"note":"n"}}}`,
		`{"jsonrpc":"2.0","id":"mcptask/$VICTIM/step","result":{"action":"decline"}}`, `{"jsonrpc":"2.0","id":"mcptask/$ASK/step","error":{"code":1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":"mcptask/$ASK/step","result":{"task":{"taskId":"t","status":"working","ttl":null,"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"}}}`,
		`{"jsonrpc":"2.0","id":"mcptask:get:1/$ASK/step","result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["$VICTIM","$ASK"],"toolsListChanged":true},%M}}`,
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
	}
	// These messages are checked against a schema, in both revisions. 424242 marks the value to
	// change.
	for _, tool := range Checked {
		seeds = append(seeds, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"v":[424242]}}}`, tool),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"v":[424242]},%%M}}`, tool))
	}
	seeds = append(seeds,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tree","arguments":{"v":424242},%M}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"integers","arguments":{"v":[1]},"task":{"ttl":424242}}}`,
		`{"jsonrpc":"2.0","id":424242,"method":"tools/call","params":{"name":"integers","arguments":{"v":[1]},%M}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"integers","arguments":{"v":[1]},"_meta":{"progressToken":424242}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/update","params":{"taskId":"$BOUND","inputResponses":{"step":{"action":"accept","content":{"count":424242,"color":"red"}}},%M}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/update","params":{"taskId":"$BOUND","inputResponses":{"step":424242},%M}}`,
		`{"jsonrpc":"2.0","id":"mcptask/$BOUND/step","result":{"action":"accept","content":{"count":424242}}}`,
		`{"jsonrpc":"2.0","id":"mcptask/$BOUND/step","result":{"action":"accept","content":424242}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/list","params":{"cursor":424242}}`,
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"taskIds":424242},%M}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":424242,"clientInfo":{"name":"t","version":"1"}}}`)
	for i, seed := range seeds {
		seeds[i] = strings.ReplaceAll(seed, "%M", fuzzMeta)
	}
	return seeds
}

// Place returns the place that [Twist] needs to change the marked value of a message. It returns
// false if there is none.
func Place(body []byte) (place uint16, ok bool) {
	for i, span := range scalars(body) {
		if bytes.Equal(body[span[0]:span[1]], []byte("424242")) {
			return uint16(i), true
		}
	}
	return 0, false
}

// Requests returns pairs of a head and a body: those of Messages, and others. A head is a request
// line without its version, and headers. $SESSION stands for a session.
func Requests() [][2]string {
	seeds := [][2]string{
		{"GET /\nAccept: text/event-stream\nMcp-Session-Id: $SESSION\nMCP-Protocol-Version: 2025-11-25\n", ""},
		{"GET /\nAccept: text/event-stream\nMcp-Session-Id: $SESSION\nLast-Event-ID: _0\n", ""},
		{"DELETE /\nMcp-Session-Id: $SESSION\n", ""}, {"DELETE /\nMcp-Session-Id: x\n", ""}, {"GET /\n", ""}, {"PUT /\n", ""},
		{"GET /\nMCP-Protocol-Version: 2026-07-28\n", ""}, {"POST /\nContent-Type: text/plain\n", "{}"}, {"POST /\nOrigin: https://evil.example\n", "{}"},
	}
	for _, body := range Messages() {
		head := legacyHeads
		if strings.Contains(body, "2026-07-28") {
			head = jsonHeads + "MCP-Protocol-Version: 2026-07-28\n"
			if _, rest, ok := strings.Cut(body, `"method":"`); ok {
				method, _, _ := strings.Cut(rest, `"`)
				head += "Mcp-Method: " + method + "\n"
			}
			for _, member := range []string{`"taskId":"`, `"name":"`} {
				if _, rest, ok := strings.Cut(strings.ReplaceAll(body, fuzzMeta, ""), member); ok {
					name, _, _ := strings.Cut(rest, `"`)
					head += "Mcp-Name: " + name + "\n"
				}
			}
		}
		seeds = append(seeds, [2]string{head, body}, [2]string{jsonHeads, body})
	}
	return seeds
}
