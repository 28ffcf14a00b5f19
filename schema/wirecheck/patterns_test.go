package wirecheck

import (
	"strings"
	"testing"
)

// TestPatterns checks faults in the guide's tasks that a schema alone would accept.
func TestPatterns(t *testing.T) {
	const (
		call  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"taskId":"t"}}}`
		get   = `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t"}}`
		ended = `{"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"id":"t"}}`
		list  = `{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`
		state = `"id":"t","status":"working","createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z","pollInterval":1`
		done  = `"id":"t","status":"completed","createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"`
	)
	for name, test := range map[string]struct{ request, result, want string }{
		"a task":                   {call, `{"_meta":{"task":{` + state + `,"ttl":5}}}`, ""},
		"a task and a result":      {call, `{"_meta":{"task":{` + state + `}},"content":[]}`, "more than the task"},
		"a task that is not asked": {strings.Replace(call, "taskId", "task", 1), `{"_meta":{"task":{` + state + `}},"content":[]}`, "did not request"},
		"a task of 2025-11-25":     {call, `{"task":{` + state + `,"taskId":"t","ttl":5}}`, "did not request"},
		"no pollInterval":          {call, `{"_meta":{"task":{` + done + `,"ttl":5}}}`, "no pollInterval"},
		"a plain result":           {call, `{"content":[]}`, ""},
		"a state":                  {get, `{` + state + `}`, ""},
		"a state with a ttl":       {get, `{` + state + `,"ttl":5}`, "has ttl"},
		"a result too early":       {get, `{` + state + `,"result":{"content":[]}}`, "has result"},
		"a state of 2025-11-25":    {get, `{` + state + `,"taskId":"t"}`, "other revisions"},
		"an unknown status":        {get, `{` + strings.Replace(state, "working", "submitted", 1) + `}`, "does not fit"},
		"a result":                 {ended, `{"id":"t","status":"completed","result":{"content":[]}}`, ""},
		"a bare result":            {ended, `{"content":[]}`, "does not fit"},
		"an empty result":          {ended, `{"id":"t","status":"completed"}`, "neither or both"},
		"an error of a success":    {ended, `{"id":"t","status":"completed","error":{"code":1,"message":"m"}}`, "has error"},
		"a result of no end":       {ended, `{"id":"t","status":"cancelled","result":{"content":[]}}`, "that is \"cancelled\""},
		"a list":                   {list, `{"tasks":[{` + state + `},{` + done + `}]}`, ""},
		"a list with a ttl":        {list, `{"tasks":[{` + state + `,"ttl":5}]}`, "has ttl"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFault(t, test.request+"\n", `{"jsonrpc":"2.0","id":1,"result":`+test.result+"}\n", test.want)
		})
	}
	c, err := sharedChecker()
	if err != nil {
		t.Fatal(err)
	}
	for message, good := range map[string]bool{
		`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"id":"t"}}`:    true,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"id":5}}`:      false,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{}}`:            false,
		`{"jsonrpc":"2.0","id":"a","method":"tasks/cancel","params":{"id":"t"}}`: true,
	} {
		if err := c.Message(Patterns, []byte(message)); (err == nil) != good {
			t.Errorf("%s: %v", message, err)
		}
	}
}
