package wirecheck_test

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wirecheck"
)

// TestChecker makes sure that the checker refuses what it is there to refuse.
func TestChecker(t *testing.T) {
	c, err := wirecheck.New()
	if err != nil {
		t.Fatal(err)
	}
	const times = `"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"`
	for _, test := range []struct {
		name, revision, method, result string
		ok                             bool
	}{
		{"a task", wirecheck.Legacy, "tasks/get", `{"taskId":"t","status":"working","ttl":null,` + times + `}`, true},
		{"a task without ttl (T-07)", wirecheck.Legacy, "tasks/get", `{"taskId":"t","status":"working",` + times + `}`, false},
		{"an unknown status", wirecheck.Legacy, "tasks/get", `{"taskId":"t","status":"submitted","ttl":1,` + times + `}`, false},
		{"a result without related-task (C-41)", wirecheck.Legacy, "tasks/result", `{"content":[]}`, false},
		{"a nested create", wirecheck.Legacy, "tools/call", `{"task":{"taskId":"t","status":"working","ttl":1,` + times + `}}`, true},
		{"a flat create", wirecheck.Modern, "tools/call", `{"resultType":"task","taskId":"t","status":"working","ttlMs":1,` + times + `}`, true},
		{"a wrapped create (EX-01)", wirecheck.Modern, "tools/call", `{"resultType":"task","task":{"taskId":"t","status":"working","ttlMs":1,` + times + `}}`, false},
		{"completed without a result (E-32)", wirecheck.Modern, "tasks/get", `{"resultType":"complete","taskId":"t","status":"completed","ttlMs":1,` + times + `}`, false},
		{"working with a result (T-36)", wirecheck.Modern, "tasks/get", `{"resultType":"complete","taskId":"t","status":"working","ttlMs":1,"result":{"resultType":"complete","content":[]},` + times + `}`, false},
		{"a float (E-16)", wirecheck.Modern, "tasks/get", `{"resultType":"complete","taskId":"t","status":"working","ttlMs":1.5,` + times + `}`, false},
		{"an ack", wirecheck.Modern, "tasks/cancel", `{"resultType":"complete"}`, true},
		{"an ack with a task (EX-05)", wirecheck.Modern, "tasks/cancel", `{"resultType":"complete","taskId":"t"}`, false},
		{"an ack of the wrong type (E-12)", wirecheck.Modern, "tasks/update", `{"resultType":"task"}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := c.Result(test.revision, test.method, []byte(test.result))
			if (err == nil) != test.ok {
				t.Errorf("%s: %v", test.result, err)
			}
		})
	}
	for response, ok := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`: true,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"m"}}`:                                                                                     false,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32602}}`:                                                                                                   false,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-32602,"message":"m"}}`:                                                                         false,
	} {
		if err := c.Response(wirecheck.Modern, "tasks/get", []byte(response)); (err == nil) != ok {
			t.Errorf("%s: %v", response, err)
		}
	}
}
