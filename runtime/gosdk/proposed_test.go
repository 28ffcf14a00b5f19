package gosdk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// scriptProposal is a script that speaks the proposal SEP-1686. Whatever the client sends
// to it has to fit the proposal's schema.
func scriptProposal(t testing.TB, answer func(c call) reply) *scripted {
	t.Helper()
	s := &scripted{t: t, revision: mcptask.RevisionSEP1686}
	s.answer = func(c call) reply {
		switch c.method {
		case "initialize":
			return result(`{"protocolVersion":%q,"capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":true}}}},"serverInfo":{"name":"script","version":"1"}}`, wiretest.LegacyRevision)
		case "HTTP GET", "HTTP DELETE":
			return reply{status: http.StatusMethodNotAllowed}
		}
		return answer(c)
	}
	t.Cleanup(func() {
		checker, err := wirecheck.New()
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		made := map[string]bool{}
		for _, c := range s.calls {
			if c.method == "tools/call" {
				made[string(c.id)] = true
			}
			if c.method == "notifications/cancelled" && !made[c.member("requestId")] {
				continue // of a request about a task, which is not the task's
			}
			definition, data := proposedDefinitions[c.method], []byte(c.params)
			if definition == "" {
				continue
			}
			if !strings.HasSuffix(definition, "Params") {
				if data, err = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": c.method, "params": c.params}); err != nil {
					t.Fatal(err)
				}
			}
			if err := checker.Fits(s.revision, definition, data); err != nil {
				t.Errorf("the client sent %s: %v", data, err)
			}
			if id := c.member("_meta", relatedProposed, "taskId"); c.method != "tools/call" && (id == "" || strings.HasPrefix(c.method, "tasks/") && id != c.member("taskId")) {
				t.Errorf("%s is related to %s: %s", c.method, id, c.params)
			}
		}
	})
	return s
}

var proposedDefinitions = map[string]string{
	"tools/call": "TaskAugmentedRequestParams", "tasks/get": "GetTaskRequest", "tasks/result": "GetTaskPayloadRequest",
	"tasks/list": "ListTasksRequest", "tasks/delete": "DeleteTaskRequest", "notifications/cancelled": "CancelledNotification",
}

const (
	relatedProposed = "modelcontextprotocol.io/related-task"
	askedProposed   = "modelcontextprotocol.io/task"
)

// named is the task that a message is about, as JSON; "" is none.
func (c call) named() string {
	if id := c.member("taskId"); id != "" {
		return id
	}
	return c.member("_meta", askedProposed, "taskId")
}

// announcement tells of the task of a call.
func announcement(c call) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tasks/created","params":{"_meta":{%q:{"taskId":%s}}}}`, relatedProposed, c.named())
}

// held announces the task of a call, and leaves the call open until a channel is
// closed or the client is gone; last is its answer then.
func held(c call, until <-chan struct{}, last reply) reply {
	last.stream = func(send func(string)) {
		send(announcement(c))
		select {
		case <-until:
		case <-c.ctx.Done():
		}
	}
	return last
}

// stands is the answer to a poll of the proposal's.
func stands(c call, status string, more ...string) reply {
	members := append([]string{fmt.Sprintf(`"taskId":%s,"status":%q,"keepAlive":null,"_meta":{%q:{"taskId":%[1]s}}`, c.named(), status, relatedProposed)}, more...)
	return result(`{%s}`, strings.Join(members, ","))
}

// gone answers everything as a server that has no such task.
func gone(call) reply { return refusal(wiretest.InvalidParams, "") }
