package pushtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestPipeRemoteQuestions checks questions that a client on a pipe keeps as tasks.
func TestPipeRemoteQuestions(t *testing.T) {
	rules.Covers(t, "C-03", "C-15", "C-64", "C-73")
	spec := mcptask.InputSpec{Name: "Note", Message: "?", Schema: `{"type":"object","properties":{"note":{"type":"string"}}}`}
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "ask", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			answer, err := mcptask.Ask[struct{ Note string }](ctx, task, spec, "one", "")
			return answer.Note, err
		})
	const state = `{"taskId":"r","status":%q,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null,"pollInterval":100}`
	const tasks = `{"elicitation":{},"tasks":{"cancel":{},"requests":{"elicitation":{"create":{}}}}}`
	const answer = `{"action":"accept","content":{"note":"yes"},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"r"}}}`
	// begin starts a task that asks, and waits for its end with a request whose ID is "end".
	begin := func(t *testing.T, capabilities string) (p *wiretest.Piped, id string, question wiretest.PipedMessage) {
		t.Helper()
		p = wiretest.NewPiped(t, tool)
		p.InitializeWith(capabilities)
		p.Say(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"ask","arguments":{},"task":{}}}`)
		id = p.NextMessage().Result.Task.TaskID
		p.Say(`{"jsonrpc":"2.0","id":"end","method":"tasks/result","params":{"taskId":%q}}`, id)
		return p, id, p.NextMessage()
	}
	expect := func(t *testing.T, p *wiretest.Piped, method string) wiretest.PipedMessage {
		t.Helper()
		m := p.NextMessage()
		if m.Method != method || m.Params.TaskID != "r" {
			t.Fatalf("%s, want %s", m.Line, method)
		}
		return m
	}
	ends := func(t *testing.T, p *wiretest.Piped, text string) {
		t.Helper()
		if m := p.NextMessage(); m.ID != "end" || !strings.Contains(m.Line, text) {
			t.Errorf("%s, want %s", m.Line, text)
		}
	}
	reply := func(p *wiretest.Piped, id, response string) { p.Say(`{"jsonrpc":"2.0","id":%q,%s}`, id, response) }
	result := func(text string) string { return `"result":` + text }
	status := func(s string) string { return fmt.Sprintf(state, s) }
	created := result(`{"task":` + status("working") + `}`)

	// run runs the subtests one after another, because the last counts goroutines.
	run := func(name string, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { bubble.Test(t, test) })
	}
	run("tasks/result waits", func(t *testing.T) {
		p, _, q := begin(t, tasks)
		if q.Params.Task == nil {
			t.Errorf("%s", q.Line)
		}
		reply(p, q.ID, created)
		m := expect(t, p, "tasks/result")
		p.Say(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":%s}`, status("completed"))
		reply(p, m.ID, result(answer))
		ends(t, p, "yes")
		reply(p, m.ID, result(answer)) // twice, and the repetition is ignored
		line := p.Ask(`{"jsonrpc":"2.0","id":"after","method":"tasks/list"}`)
		for strings.Contains(line, `"notifications/tasks/status"`) { // of the task's end
			line = p.Hear()
		}
		if !strings.Contains(line, `"after"`) {
			t.Error(line)
		}
	})
	run("cancelled", func(t *testing.T) {
		p, id, q := begin(t, tasks)
		reply(p, q.ID, created)
		expect(t, p, "tasks/result")
		p.Say(`{"jsonrpc":"2.0","id":"stop","method":"tasks/cancel","params":{"taskId":%q}}`, id)
		for want := map[string]bool{"stop": true, "end": true, "tasks/cancel": true}; len(want) > 0; { // in any order
			m := p.NextMessage()
			name := m.ID
			if m.Method != "" {
				name = m.Method
				reply(p, m.ID, result(status("cancelled")))
			}
			if !want[name] {
				t.Fatal(m.Line)
			}
			delete(want, name)
		}
	})
	run("not declared", func(t *testing.T) {
		p, _, q := begin(t, `{"elicitation":{},"tasks":{"requests":{"sampling":{"createMessage":{}}}}}`)
		if q.Params.Task != nil {
			t.Errorf("%s", q.Line)
		}
		reply(p, q.ID, result(answer))
		ends(t, p, "yes")
	})
	run("the client ends", func(t *testing.T) {
		before := leak.Now()
		p, _, q := begin(t, tasks)
		reply(p, q.ID, created)
		expect(t, p, "tasks/result")
		_ = p.In.Close()
		p.WantEnd()
		before.AtMost(t, 8) // those of the task itself
		select {
		case line, ok := <-p.Lines:
			if ok && strings.Contains(line, `"method":"tasks/`) {
				t.Error(line)
			}
		case <-time.After(300 * time.Millisecond): // three intervals
		}
	})
}
