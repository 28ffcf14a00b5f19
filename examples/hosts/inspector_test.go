//go:build long && unix

package main

import (
	"regexp"
	"testing"
)

// inspectorCLI is the MCP Inspector on the command line: each call is a process.
var inspectorCLI = host{
	name: "MCP Inspector `--cli`", module: "@modelcontextprotocol/inspector",
	routes: []route{
		{over: "HTTP", revision: "2025-11-25", open: openInspector("legacy"), cannot: inspectorCannot, once: true},
		{over: "HTTP", revision: "2026-07-28", open: openInspector("modern"), cannot: inspectorCannot, once: true, polls: true},
		{over: "stdio", revision: "2025-11-25", stdio: true, open: openInspector("legacy"), cannot: inspectorCannot, once: true},
		{over: "stdio", revision: "2026-07-28", stdio: true, open: openInspector("modern"), cannot: inspectorCannot, once: true, polls: true},
	},
}

var inspectorCannot = map[string]failing{"sampling": {words: noModel}, "restart": givesUp}

// givesUp has several words: the Inspector's choice depends on its work at the time when the server goes away.
var givesUp = failing{
	words: `Task execution is closed|Task-enabled session is closed|MCP client request failed|the server is shutting down`,
	note:  "If the server goes away while it waits for a task, it gives up.",
}

// The server's answers if a client lacks a capability.
const (
	noModel = `the requestor cannot be asked: its client has not declared that it answers sampling/createMessage`
	noForms = `the requestor cannot be asked: its client has not declared that it answers elicitation/create`
)

// inspector drives the Inspector's command.
type inspector struct {
	terminal
	program string
	server  *server
	era     string
}

func openInspector(era string) func(*testing.T, *server) driver {
	return func(t *testing.T, s *server) driver {
		t.Helper()
		return inspector{newTerminal(t), program(t, "mcp-inspector"), s, era}
	}
}

// connectTimeout is in milliseconds. By default it is 15 seconds, in which a busy machine may not start a server.
const connectTimeout = "120000"

// args is the command line of a method.
func (c inspector) args(method ...string) []string {
	args := []string{c.program, "--cli", "--format", "json", "--protocol-era", c.era, "--connect-timeout", connectTimeout}
	if c.server.command == nil {
		return append(append(args, "--server-url", c.server.url), method...)
	}
	return append(append(args, method...), append([]string{"--"}, c.server.command...)...)
}

func (c inspector) list(t *testing.T) reply {
	return c.run(t, c.args("--method", "tools/list")...)
}

func (c inspector) call(t *testing.T, tool string, args object) reply {
	return c.run(t, c.args("--method", "tools/call", "--tool-name", tool, "--tool-args-json", toJSON(args))...)
}

func (c inspector) during(t *testing.T, tool string, args object, meanwhile func(func())) reply {
	p := c.start(t, c.args("--method", "tools/call", "--tool-name", tool, "--tool-args-json", toJSON(args))...)
	meanwhile(func() { p.interrupt(t) })
	return p.wait(t)
}

// inspectorDo is the Inspector's other command, which keeps its connections in a process of its own.
var inspectorDo = host{
	name: "MCP Inspector `mcpdo`", module: "@modelcontextprotocol/inspector",
	routes: []route{
		{over: "HTTP", revision: "2025-11-25", keeps: true, open: openMcpdo("legacy"), cannot: inspectorCannot},
		{over: "HTTP", revision: "2026-07-28", keeps: true, open: openMcpdo("modern"), cannot: inspectorCannot},
		{over: "stdio", revision: "2025-11-25", stdio: true, keeps: true, open: openMcpdo("legacy"), cannot: inspectorCannot},
		{over: "stdio", revision: "2026-07-28", stdio: true, keeps: true, open: openMcpdo("modern"), cannot: inspectorCannot},
	},
}

// mcpdo drives the command. Each command is a process.
type mcpdo struct {
	terminal
	program string
	era     string
	running *process // the command that waits for a task
}

func openMcpdo(era string) func(*testing.T, *server) driver {
	return func(t *testing.T, s *server) driver {
		t.Helper()
		c := &mcpdo{terminal: newTerminal(t), program: program(t, "mcpdo"), era: era}
		t.Cleanup(func() { c.run(t, c.program, "daemon", "stop") })
		target := append([]string{"--"}, s.command...)
		if s.command == nil {
			target = []string{s.url}
		}
		var said reply
		for range 5 { // on a busy machine it gives up on the process that it has started
			if said = c.run(t, c.args(append([]string{"connect", "--era", era}, target...)...)...); said.has(`"protocolEra": "` + era + `"`) {
				return c
			}
		}
		t.Fatalf("mcpdo does not connect:\n%s", said.text)
		return nil
	}
}

// args is the command line of a command.
func (c *mcpdo) args(command ...string) []string {
	return append([]string{c.program, "--connection", "bakery", "--format", "json"}, command...)
}

func (c *mcpdo) list(t *testing.T) reply { return c.run(t, c.args("tools/list")...) }

func (c *mcpdo) call(t *testing.T, tool string, args object) reply {
	return c.run(t, c.args("tools/call", tool, "--tool-args-json", toJSON(args))...)
}

// startTask leaves the command that waits for the task in the background: it tells the task's ID only at its end.
func (c *mcpdo) startTask(t *testing.T, tool string, args object) (id string, said reply) {
	command := []string{"tools/call", tool, "--tool-args-json", toJSON(args)}
	if c.era == "legacy" {
		command = append(command, "--task")
	}
	c.running = c.start(t, c.args(command...)...)
	return "running", reply{}
}

func (c *mcpdo) hasEnded(*testing.T) bool {
	select {
	case <-c.running.ended:
		return true
	default:
		return false
	}
}

func (c *mcpdo) result(t *testing.T, _ string) reply {
	return c.running.wait(t)
}

func (c *mcpdo) cancel(t *testing.T, id string) reply {
	c.running.interrupt(t)
	return c.result(t, id)
}

// pendingForm is the name that mcpdo gives a question.
var pendingForm = regexp.MustCompile(`"elicitationId": "([^"]+)"`)

func (c *mcpdo) ask(t *testing.T, tool string, args, answer object) reply {
	said := c.call(t, tool, args)
	form := pendingForm.FindStringSubmatch(said.text)
	if form == nil {
		return said
	}
	return c.run(t, c.args("elicitation/respond", form[1], toJSON(answer))...)
}
