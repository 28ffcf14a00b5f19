package published

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// commandLine is a command line of mcptaskgen, with the server's place left open, and its result.
type commandLine struct {
	args   []string // the command and its flags
	rest   []string // the words after the server
	code   int
	stdout string // a part of it
	stderr string // a part of it
}

// TestCommand runs mcptask call against published servers, as a person does.
func TestCommand(t *testing.T) {
	files, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(files, "note.txt")
	if err := os.WriteFile(note, []byte("typed"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MEMORY_FILE_PATH", filepath.Join(t.TempDir(), "memory.jsonl"))
	program := peer.Build(t, "../../cmd/mcptask")
	call := []string{"call"}
	lines := map[string][]commandLine{
		"everything": {
			{call, []string{"get-sum", "a=40", "b=2"}, 0, "The sum of 40 and 2 is 42.\n", ""},
			{call, []string{"get-sum", "a=many", "b=2"}, 2, "", `mcptask call: a: got "many", want a number`},
			{call, []string{"get-smu"}, 2, "", `the server has no tool "get-smu"; did you mean get-sum?`},
			{call, []string{"get-structured-content", "location=Chicago"}, 0, `"temperature": 36`, ""},
			{call, []string{"get-tiny-image"}, 0, "Here's the image", "image.png (image/png, 4033 bytes): --save DIRECTORY writes it"},
			{[]string{"tools"}, []string{"get-sum"}, 0, "a  a number, required  First number\n", ""},
		},
		"filesystem": {
			{call, []string{"read_text_file", "path=" + note}, 0, "typed\n", ""},
			{call, []string{"read_text_file", "path=" + filepath.Dir(files)}, 5, "", "read_text_file: Access denied"},
			{[]string{"call", "--output", "json"}, []string{"read_text_file", "path=" + files}, 5, `"isError":true`, `{"error":{"code":"tool_failed"`},
			{call, []string{"edit_file", "path=" + note, `edits:=[{"oldText":"typed","newText":"edited"}]`, "dryRun=true"}, 0, "+edited", ""},
		},
		"memory": {
			{call, []string{"create_entities", `entities:=[{"name":"n","entityType":"t","observations":["o"]}]`}, 0, `"name": "n"`, ""},
			{call, []string{"open_nodes", "names=n", "names=m"}, 0, `"name": "n"`, ""},
			{call, []string{"create_entities", `entities={"a":1}`}, 2, "", `mcptask call: entities.0: missing properties "name", "entityType", "observations"`},
		},
	}
	// A program that has run a task takes seconds to end.
	overHTTP := append(slices.Clone(lines["everything"]),
		commandLine{[]string{"call", "--answer", `*={"interpretation":"snake"}`}, []string{"simulate-research-query", "topic=python", "ambiguous=true"}, 0, "# Research Report: python (snake)", "asks: Found multiple"},
		commandLine{[]string{"call", "--answer", `*={"interpretation":7}`}, []string{"simulate-research-query", "topic=python", "ambiguous=true"}, 2, "", "the answer does not fit its schema"},
	)
	for _, s := range servers {
		if lines[s.name] == nil {
			continue
		}
		if s.name == "filesystem" {
			s.args = []string{files}
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			words := slices.Concat([]string{"--"}, s.command(t), []string{"--"})
			for _, line := range lines[s.name] {
				runCommand(t, program, words, line)
			}
		})
		if s.name == "everything" {
			t.Run(s.name+" over HTTP", func(t *testing.T) {
				t.Parallel()
				words := []string{serveEverything(t, s)}
				for _, line := range overHTTP {
					runCommand(t, program, words, line)
				}
			})
		}
	}
}

// runCommand runs a command line with the words of the server in it.
func runCommand(t *testing.T, program string, server []string, line commandLine) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, slices.Concat(line.args, server, line.rest)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	code := 0
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != line.code || !strings.Contains(stdout.String(), line.stdout) || !strings.Contains(stderr.String(), line.stderr) {
		t.Errorf("%s %s: exit code %d, want %d, and standard output and error\n%s\n%s\nwant\n%s\n%s",
			line.args, line.rest, code, line.code, stdout.String(), stderr.String(), line.stdout, line.stderr)
	}
}

// serveEverything starts the server over HTTP and returns its URL.
func serveEverything(t *testing.T, s server) string {
	t.Helper()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(free.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close() // the server takes it
	s.args = []string{"streamableHttp"}
	words := s.command(t)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "PORT="+port)
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		if strings.Contains(scanner.Text(), "listening on port "+port) {
			go func() {
				for scanner.Scan() { // so that the server can write
				}
			}()
			return "http://127.0.0.1:" + port + "/mcp"
		}
	}
	t.Fatal("the server did not start")
	return ""
}
