package wirecheck

import "testing"

// TestProposalTap checks that the tap finds the faults of messages of the proposal SEP-1686, and mistakes none for one
// of 2025-11-25.
func TestProposalTap(t *testing.T) {
	const (
		call    = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"modelcontextprotocol.io/task":{"taskId":"T"}}}}`
		get     = `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"T"}}`
		list    = `{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`
		remove  = `{"jsonrpc":"2.0","id":1,"method":"tasks/delete","params":{"taskId":"T"}}`
		related = `"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}}`
		created = `{"jsonrpc":"2.0","method":"notifications/tasks/created","params":{`
		result  = `{"jsonrpc":"2.0","id":1,"result":{`
	)
	for name, test := range map[string]struct{ said, spoken, want string }{
		"created":             {call, created + related + `}}`, ""},
		"created, and more":   {call, created + related + `,"status":"submitted"}}`, "more or less"},
		"created, of nothing": {call, created + `"_meta":{}}}`, "more or less"},
		"an answer":           {call, result + `"content":[],` + related + `}}`, ""},
		"a plain answer":      {call, result + `"content":[]}}`, ""},
		"another's task":      {call, result + `"task":{"taskId":"T"},` + related + `}}`, "in the place of the result"},
		"no ID":               {call, result + `"content":[],"_meta":{"modelcontextprotocol.io/related-task":{}}}}`, "does not fit"},
		"a task":              {get, result + `"taskId":"T","status":"submitted","keepAlive":null,` + related + `}}`, ""},
		"another status":      {get, result + `"taskId":"T","status":"queued","keepAlive":1,` + related + `}}`, "does not fit"},
		"no keepAlive":        {get, result + `"taskId":"T","status":"working",` + related + `}}`, "does not fit"},
		"a ttl":               {get, result + `"taskId":"T","status":"working","keepAlive":1,"ttl":1,` + related + `}}`, "of another revision"},
		"failed of nothing":   {get, result + `"taskId":"T","status":"failed","keepAlive":1,` + related + `}}`, "has the error"},
		"failed":              {get, result + `"taskId":"T","status":"failed","error":"e","keepAlive":1,` + related + `}}`, ""},
		"a list":              {list, result + `"tasks":[{"taskId":"T","status":"working","keepAlive":1}]}}`, ""},
		"a list, and more":    {list, result + `"tasks":[{"taskId":"T","status":"working","keepAlive":1}],` + related + `}}`, "related-task"},
		"deleted":             {remove, result + related + `}}`, ""},
		"deleted, unnamed":    {remove, result + `}}`, "related-task"},
		"not deleted":         {remove, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"m"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantFault(t, test.said+"\n", test.spoken+"\n", test.want)
		})
	}
}
