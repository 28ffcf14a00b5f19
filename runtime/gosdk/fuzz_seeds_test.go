package gosdk_test

import "strings"

// The seeds of the fuzz targets: real exchanges, and the attacks of the other
// tests.

const (
	jsonHeads   = "POST /\nContent-Type: application/json\nAccept: application/json, text/event-stream\n"
	legacyHeads = jsonHeads + "Mcp-Session-Id: $SESSION\nMCP-Protocol-Version: 2025-11-25\n"
	fuzzMeta    = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
)

// pipeSeeds are bodies over HTTP too. %M is the _meta of 2026-07-28.
var pipeSeeds = func() []string {
	seeds := []string{
		openSession, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
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
	for i, seed := range seeds {
		seeds[i] = strings.ReplaceAll(seed, "%M", fuzzMeta)
	}
	return seeds
}()

// httpSeeds are pairs of head and body.
var httpSeeds = func() [][2]string {
	seeds := [][2]string{
		{"GET /\nAccept: text/event-stream\nMcp-Session-Id: $SESSION\nMCP-Protocol-Version: 2025-11-25\n", ""},
		{"GET /\nAccept: text/event-stream\nMcp-Session-Id: $SESSION\nLast-Event-ID: _0\n", ""},
		{"DELETE /\nMcp-Session-Id: $SESSION\n", ""}, {"DELETE /\nMcp-Session-Id: x\n", ""}, {"GET /\n", ""}, {"PUT /\n", ""},
		{"GET /\nMCP-Protocol-Version: 2026-07-28\n", ""}, {"POST /\nContent-Type: text/plain\n", "{}"}, {"POST /\nOrigin: https://evil.example\n", "{}"},
	}
	for _, body := range pipeSeeds {
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
}()
