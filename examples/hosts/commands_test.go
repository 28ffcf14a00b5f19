//go:build long && unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mcporter calls a tool in a process of its own.
var mcporter = host{
	name: "mcporter", module: "mcporter",
	routes: []route{
		{over: "HTTP", revision: "2025-11-25", open: openMcporter, once: true, cannot: map[string]failing{"sampling": {words: noModel}}},
		{over: "stdio", revision: "2025-11-25", stdio: true, open: openMcporter, once: true, cannot: map[string]failing{"sampling": {words: noModel}}},
	},
}

// porter drives mcporter.
type porter struct {
	terminal
	program string
	target  []string
}

func openMcporter(t *testing.T, s *server) driver {
	t.Helper()
	c := porter{newTerminal(t), program(t, "mcporter"), []string{"--allow-http", "--http-url", s.url}}
	if s.command != nil {
		c.target = []string{"--stdio", strings.Join(s.command, " ")}
	}
	return c
}

func (c porter) args(command string, rest ...string) []string {
	return append(append([]string{c.program, command}, c.target...), rest...)
}

func (c porter) list(t *testing.T) reply { return c.run(t, c.args("list")...) }

func (c porter) call(t *testing.T, tool string, args object) reply {
	return c.run(t, c.args("call", "--tool", tool, "--args", toJSON(args))...)
}

func (c porter) during(t *testing.T, tool string, args object, meanwhile func(func())) reply {
	p := c.start(t, c.args("call", "--tool", tool, "--args", toJSON(args))...)
	meanwhile(func() { p.interrupt(t) })
	return p.wait(t)
}

// wong2 is @wong2/mcp-cli, which calls tools without a dialog only over stdio.
var wong2 = host{
	name: "@wong2/mcp-cli", module: "@wong2/mcp-cli",
	routes: []route{
		{over: "stdio", revision: "2025-11-25", stdio: true, open: openWong2, once: true, cannot: map[string]failing{"sampling": {words: noModel}}},
	},
}

// cli drives mcp-cli.
type cli struct {
	terminal
	program string
	config  string
	command []string
}

func openWong2(t *testing.T, s *server) driver {
	t.Helper()
	c := cli{terminal: newTerminal(t), program: program(t, "mcp-cli"), command: s.command}
	c.config = filepath.Join(c.dir, "servers.json")
	servers := toJSON(object{"mcpServers": object{"bakery": object{"command": s.command[0], "args": s.command[1:]}}})
	if err := os.WriteFile(c.config, []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// list opens the dialog, which shows the tools and ends with its input. It would take the flags of a command for its own.
func (c cli) list(t *testing.T) reply {
	script := filepath.Join(c.dir, "serve")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+strings.Join(c.command, " ")+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return c.run(t, c.program, script)
}

func (c cli) args(tool string, args object) []string {
	return []string{c.program, "--config", c.config, "call-tool", "bakery:" + tool, "--args", toJSON(args)}
}

func (c cli) call(t *testing.T, tool string, args object) reply {
	return c.run(t, c.args(tool, args)...)
}

func (c cli) during(t *testing.T, tool string, args object, meanwhile func(func())) reply {
	p := c.start(t, c.args(tool, args)...)
	meanwhile(func() { p.interrupt(t) })
	return p.wait(t)
}
