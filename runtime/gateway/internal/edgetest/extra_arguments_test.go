package edgetest

import (
	"context"
	"encoding/json"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestExtraArguments checks that the server drops the arguments that a program is known to add, unless the tool has a
// property of that name, and refuses them from any other program.
func TestExtraArguments(t *testing.T) {
	echo := func(name, schema string) mcptask.Tool {
		return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: schema, Policy: mcptask.Policy{Task: mcptask.TaskForbidden}},
			func(_ context.Context, _ *mcptask.Task, in map[string]any) (string, error) {
				data, err := json.Marshal(in)
				return string(data), err
			})
	}
	const rest = `"name":{"type":"string"}},"additionalProperties":false}`
	tools := mcptask.Tools{Service: "Echo", Impl: struct{}{}, Tools: []mcptask.Tool{
		echo("plain_echo", `{"type":"object","properties":{`+rest),
		echo("tool_echo", `{"type":"object","properties":{"tool":{"type":"string"},`+rest),
		echo("open_echo", `{"type":"object","properties":{"name":{"type":"string"}}}`),
		echo("composed_echo", `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"properties":{"action":{"type":"string"},`+rest+`}}`),
	}}
	for client, knows := range map[string]bool{"@n8n/n8n-nodes-langchain.mcpClientTool": true, "another": false} {
		profile := func(taskserver.ClientInfo) taskserver.ClientProfile {
			return taskserver.KnownClient(taskserver.ClientInfo{Name: client})
		}
		t.Run(client, func(t *testing.T) {
			eachPeer(t, wiretest.Setup{Tools: []mcptask.Tools{tools}, Options: taskserver.Options{ClientProfile: profile}}, func(t *testing.T, p *wiretest.Peer) {
				for tool, want := range map[string]string{
					"plain_echo": `{"name":"n"}`, "tool_echo": `{"name":"n","tool":"t"}`, "composed_echo": `{"action":"a","name":"n"}`,
					"open_echo": `{"action":"a","chatInput":"c","name":"n","sessionId":"s","tool":"t","toolCallId":"i"}`,
				} {
					extra := map[string]any{"name": "n", "action": "a", "chatInput": "c", "sessionId": "s", "tool": "t", "toolCallId": "i"}
					r := p.CallTool(tool, extra)
					if !knows && tool != "open_echo" {
						r.WantIn("additional", "chatInput")
						continue
					}
					r.WantText(false, want)
					if tool == "open_echo" {
						continue
					}
					extra["more"] = 1
					p.CallTool(tool, extra).WantIn(`\"more\"`)
				}
			})
		})
	}
}
