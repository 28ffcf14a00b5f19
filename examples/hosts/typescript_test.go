//go:build long && unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// interop has the programs on the published TypeScript clients.
const interop = "../pipeline/interop"

// typeScript1 is a program on the TypeScript SDK 1.x.
var typeScript1 = host{
	name: "`@modelcontextprotocol/sdk`", version: interopVersion("sdk"),
	routes: []route{
		{over: "HTTP", revision: "2025-11-25", keeps: true, open: openScript("1", "2025-11-25")},
		{over: "stdio", revision: "2025-11-25", stdio: true, keeps: true, open: openScript("1", "2025-11-25")},
	},
}

// typeScript2 is a program on the TypeScript client 2.x with its package for tasks.
var typeScript2 = host{
	name: "`@modelcontextprotocol/client`", version: interopVersion("client"),
	routes: []route{
		{over: "HTTP", revision: "2025-11-25", keeps: true, open: openScript("2", "2025-11-25")},
		{over: "HTTP", revision: "2026-07-28", keeps: true, open: openScript("2", "2026-07-28")},
		{over: "stdio", revision: "2025-11-25", stdio: true, keeps: true, open: openScript("2", "2025-11-25")},
	},
}

// interopVersion finds the version of a package that the programs use.
func interopVersion(name string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		dir := filepath.Join(interop, modules, "@modelcontextprotocol", name)
		if _, err := os.Stat(dir); err != nil {
			peer.Missing(t, "a published client is missing: run npm ci in examples/pipeline/interop")
		}
		return packageVersion(t, dir)
	}
}

// script is a program that reads commands line by line, and answers in lines.
type script struct {
	in  io.Writer
	out *bufio.Reader
	// stop ends the program, which makes it answer nothing.
	stop func()
}

func openScript(sdk, revision string) func(*testing.T, *server) driver {
	return func(t *testing.T, s *server) driver {
		t.Helper()
		program, err := filepath.Abs(filepath.Join(interop, "drive.mjs"))
		if err != nil {
			t.Fatal(err)
		}
		target := s.command
		if target == nil {
			target = []string{s.url}
		}
		return startScript(t, slices.Concat([]string{program, sdk, revision}, target)...)
	}
}

// startScript starts a program and waits until it is connected.
func startScript(t *testing.T, args ...string) script {
	t.Helper()
	terminal := newTerminal(t)
	cmd := terminal.command(t, slices.Concat([]string{program(t, "node")}, args)...)
	log := &transcript{}
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		killGroup(cmd)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the program said:\n%s", log)
		}
	})
	c := script{in, bufio.NewReader(out), func() { killGroup(cmd) }}
	c.read(t)
	return c
}

// read reads an answer.
func (c script) read(t *testing.T) (answer struct{ Text, ID string }) {
	t.Helper()
	late := time.AfterFunc(bound, c.stop)
	defer late.Stop()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the program ended: %v", err)
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return answer
}

// do has the program do something. It returns the ID of a task if the program started one.
func (c script) do(t *testing.T, op string, line object) (id string, said reply) {
	t.Helper()
	line["op"] = op
	if _, err := fmt.Fprintln(c.in, toJSON(line)); err != nil {
		t.Fatal(err)
	}
	answer := c.read(t)
	return answer.ID, reply{answer.Text}
}

// get has the program do something that makes no task.
func (c script) get(t *testing.T, op string, line object) reply {
	t.Helper()
	_, said := c.do(t, op, line)
	return said
}

func (c script) list(t *testing.T) reply { return c.get(t, "list", object{}) }

func (c script) call(t *testing.T, tool string, args object) reply {
	return c.get(t, "call", object{"tool": tool, "args": args})
}

func (c script) startTask(t *testing.T, tool string, args object) (string, reply) {
	return c.do(t, "start", object{"tool": tool, "args": args})
}

func (c script) result(t *testing.T, id string) reply { return c.get(t, "result", object{"id": id}) }

func (c script) cancel(t *testing.T, id string) reply { return c.get(t, "cancel", object{"id": id}) }

func (c script) ask(t *testing.T, tool string, args, answer object) reply {
	return c.get(t, "call", object{"tool": tool, "args": args, "answer": answer})
}

func (c script) sample(t *testing.T, tool string, args object, line string) reply {
	return c.get(t, "call", object{"tool": tool, "args": args, "line": line})
}
