package wirecheck_test

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// TestChecker checks that the checker refuses the messages that it should refuse.
func TestChecker(t *testing.T) {
	c, err := wirecheck.New()
	if err != nil {
		t.Fatal(err)
	}
	const created = `"createdAt":"2026-01-02T03:04:05Z"`
	const times = created + `,"lastUpdatedAt":"2026-01-02T03:04:05Z"`
	for _, test := range []struct {
		name, revision, method, result string
		ok                             bool
	}{
		{"a task", wirecheck.Legacy, "tasks/get", `{"taskId":"t","status":"working","ttl":null,` + times + `}`, true},
		{"a task without ttl (T-07)", wirecheck.Legacy, "tasks/get", `{"taskId":"t","status":"working",` + times + `}`, false},
		{"an unknown status", wirecheck.Legacy, "tasks/get", `{"taskId":"t","status":"submitted","ttl":1,` + times + `}`, false},
		{"a result without related-task (C-41)", wirecheck.Legacy, "tasks/result", `{"content":[]}`, false},
		{"a nested create", wirecheck.Legacy, "tools/call", `{"task":{"taskId":"t","status":"working","ttl":1,` + times + `}}`, true},
		{"a nested create of the candidate", wirecheck.Candidate, "tools/call", `{"task":{"taskId":"t","status":"working","ttl":null,` + created + `}}`, true},
		{"a nested create with lastUpdatedAt (B-55)", wirecheck.Candidate, "tools/call", `{"task":{"taskId":"t","status":"working","ttl":1,` + times + `}}`, false},
		{"a list with lastUpdatedAt (B-55)", wirecheck.Candidate, "tasks/list", `{"tasks":[{"taskId":"t","status":"working","ttl":1,` + times + `}]}`, false},
		{"a task without createdAt (B-50)", wirecheck.Candidate, "tasks/get", `{"taskId":"t","status":"working","ttl":1}`, false},
		{"taskHint (B-14)", wirecheck.Candidate, "tools/list", `{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"taskHint":"always"}}]}`, true},
		{"a hint of another word (B-14)", wirecheck.Candidate, "tools/list", `{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"taskHint":"required"}}]}`, false},
		{"taskSupport in the candidate", wirecheck.Candidate, "tools/list", `{"tools":[{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`, false},
		{"taskHint in the release", wirecheck.Legacy, "tools/list", `{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"taskHint":"always"}}]}`, false},
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
	const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}`
	for message, ok := range map[string]bool{
		`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","status":"working","ttlMs":1,` + times + `}}`:                                      false,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + meta + `,"notifications":{"taskIds":["t"]}}}`:                          true,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + meta + `,"notifications":{"taskIds":[5]}}}`:                            false,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + meta + `}}`:                                                            false,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}`:                                                      false,
		`{"jsonrpc":"2.0","method":"notifications/tasks","params":{` + meta + `,"taskId":"t","status":"working","ttlMs":1,` + times + `}}`:                         true,
		`{"jsonrpc":"2.0","method":"notifications/tasks","params":{` + meta + `,"resultType":"complete","taskId":"t","status":"working","ttlMs":1,` + times + `}}`: false,
		`{"jsonrpc":"2.0","method":"notifications/tasks","params":{` + meta + `,"taskId":"t","status":"completed","ttlMs":1,` + times + `}}`:                       false,
	} {
		if err := c.Message(wirecheck.Modern, []byte(message)); (err == nil) != ok {
			t.Errorf("%s: %v", message, err)
		}
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
	const related = `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}`
	for message, ok := range map[string]bool{
		`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"taskId":"r"}}`:                                                                                            true,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/result","params":{"taskId":"r"}}`:                                                                                         true,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/cancel","params":{"taskId":"r"}}`:                                                                                         true,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"taskId":"r",` + related + `}}`:                                                                            false, // C-64
		`{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"mode":"url","message":"m","elicitationId":"e","url":"https://x.org","task":{},` + related + `}}`: true,
		`{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"mode":"url","message":"m","elicitationId":"e","url":"https://x.org","task":{}}}`:                 false, // C-50
		`{"jsonrpc":"2.0","id":"a","method":"roots/list","params":{"task":{},` + related + `}}`:                                                                              false, // C-05
	} {
		if err := c.Message(wirecheck.Legacy, []byte(message)); (err == nil) != ok {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// TestClients does the same for messages of clients.
func TestClients(t *testing.T) {
	c, err := wirecheck.New()
	if err != nil {
		t.Fatal(err)
	}
	const times = `"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"`
	const related = `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}`
	for _, test := range []struct {
		name, method, of, result string
		ok                       bool
	}{
		{"a task", "elicitation/create", "", `{"task":{"taskId":"t","status":"working","ttl":1,` + times + `}}`, true},
		{"a task without ttl", "elicitation/create", "", `{"task":{"taskId":"t","status":"working",` + times + `}}`, false},
		{"a result", "tasks/result", "elicitation/create", `{"action":"decline",` + related + `}`, true},
		{"a result without related-task (C-41)", "tasks/result", "elicitation/create", `{"action":"decline"}`, false},
		{"related-task where it does not belong (C-66)", "tasks/get", "", `{"taskId":"t","status":"working","ttl":1,` + times + `,` + related + `}`, false},
		{"a method that no client answers", "tools/call", "", `{"content":[]}`, false},
	} {
		err := c.Reply(wirecheck.Legacy, test.method, test.of, []byte(`{"jsonrpc":"2.0","id":1,"result":`+test.result+`}`))
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	for message, ok := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t"}}`: true,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}`:             false,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{}}`:          false,
	} {
		if err := c.Sent(wirecheck.Legacy, []byte(message)); (err == nil) != ok {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// TestFits checks messages with a definition of a revision that has no tap.
func TestFits(t *testing.T) {
	c, err := wirecheck.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		revision, definition, message string
		ok                            bool
	}{
		{"sep-1686", "GetTaskResult", `{"taskId":"t","status":"submitted","keepAlive":null}`, true},
		{"sep-1686", "GetTaskResult", `{"taskId":"t","status":"submitted"}`, false},
		{"2025-11-25-rc", "Task", `{"taskId":"t","status":"working","createdAt":"2026-01-02T03:04:05Z","ttl":null}`, true},
		{"task-patterns", "CancelTaskResult", `{"taskId":"t","status":"cancelled"}`, false},
		{"task-patterns", "CancelTaskResult", `{"id":"t","status":"cancelled"}`, true},
		{"task-patterns", "UpdateTaskResult", `{}`, false},
	} {
		if err := c.Fits(test.revision, test.definition, []byte(test.message)); (err == nil) != test.ok {
			t.Errorf("%s of %s: %s: %v", test.definition, test.revision, test.message, err)
		}
	}
}
