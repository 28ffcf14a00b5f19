package published

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

// server is a published server.
type server struct {
	name    string
	service string
	list    string   // its list of tools
	script  string   // in node_modules
	args    []string // of the script
}

var servers = []server{
	{"context7", "Context7", "", "@upstash/context7-mcp/dist/index.js", nil},
	{"everything", "Everything", "../everything/everything/tools.json", "../../everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js", []string{"stdio"}},
	{"filesystem", "Filesystem", "", "@modelcontextprotocol/server-filesystem/dist/index.js", []string{"."}},
	{"firecrawl", "Firecrawl", "", "firecrawl-mcp/dist/index.js", nil},
	{"github", "GitHub", "", "@modelcontextprotocol/server-github/dist/index.js", nil},
	{"memory", "Memory", "", "@modelcontextprotocol/server-memory/dist/index.js", nil},
	{"notion", "Notion", "", "@notionhq/notion-mcp-server/bin/cli.mjs", nil},
	{"playwright", "Playwright", "", "@playwright/mcp/cli.js", nil},
	{"sequentialthinking", "SequentialThinking", "", "@modelcontextprotocol/server-sequential-thinking/dist/index.js", nil},
}

func (s server) path() string {
	if s.list != "" {
		return s.list
	}
	return filepath.Join("lists", s.name+".json")
}

// command returns the command line of the server. It skips the test if Node.js or the server is missing.
func (s server) command(t *testing.T) []string {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("node_modules", s.script))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		peer.Missing(t, "the published servers are missing: run npm ci in examples/published and examples/everything")
	}
	return append([]string{peer.Node(t, "../conformance"), script}, s.args...)
}

// tools returns the tools of a list, each as a value.
func tools(t *testing.T, list []byte) []map[string]any {
	t.Helper()
	var all struct{ Tools []map[string]any }
	if err := json.Unmarshal(list, &all); err != nil || len(all.Tools) == 0 {
		t.Fatalf("%d tools: %v", len(all.Tools), err)
	}
	return all.Tools
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func record(t *testing.T, cfg generator.RecordConfig) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	list, err := generator.RecordTools(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// dir is a directory for all tests.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "published"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// ofHosts matches a note about what hosts refuse, of which docs/reference/portability.md has all in the lists.
var ofHosts = regexp.MustCompile(` \[[a-z-]+\]`)

// program generates a package from each list and builds testdata/main.go with them. The packages are
// in no directory: an overlay shows them to the go command.
var program = sync.OnceValues(func() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	main := filepath.Join(here, "testdata", "main.go")
	overlay := map[string]string{filepath.Join(here, "generated", "main.go"): main}
	for _, s := range servers {
		out, err := generator.Generate(context.Background(), generator.Config{Flags: commandline.Flags{
			Tools: s.path(), Out: filepath.Join(dir, s.name, "tools_gen.go"), Package: s.name, Service: s.service,
		}})
		if err != nil {
			return "", err
		}
		for _, note := range out.Notes {
			if !ofHosts.MatchString(note) {
				return "", fmt.Errorf("%s: %s", s.name, note)
			}
		}
		if _, err := out.Write(); err != nil {
			return "", err
		}
		overlay[filepath.Join(here, "generated", s.name, "tools_gen.go")] = filepath.Join(dir, s.name, "tools_gen.go")
	}
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "generated")
	if err := os.WriteFile(file, replace, 0o644); err != nil {
		return "", err
	}
	if text, err := exec.CommandContext(context.Background(), "go", "build", "-overlay", file, "-o", binary, "./generated").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, text)
	}
	return binary, nil
})

func build(t *testing.T) string {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// serve runs the program as a server and returns its URL.
func serve(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), build(t))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	return strings.TrimSpace(line)
}

// generate returns the file of a list. It sorts the members of each tool, as a server does.
func generate(t *testing.T, s server, list []byte) string {
	t.Helper()
	var members map[string]json.RawMessage
	var tools []map[string]json.RawMessage
	err := json.Unmarshal(list, &members)
	if err == nil {
		err = json.Unmarshal(members["tools"], &tools)
	}
	if err == nil {
		members["tools"], err = json.Marshal(tools)
	}
	if err == nil {
		list, err = json.Marshal(members)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := generator.Config{Dir: t.TempDir(), Flags: commandline.Flags{Tools: "tools.json", Out: "tools_gen.go", Package: s.name, Service: s.service}}
	if err := os.WriteFile(filepath.Join(cfg.Dir, cfg.Tools), list, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := generator.Generate(t.Context(), cfg)
	if err != nil || len(out.Files) != 1 {
		t.Fatalf("%d files: %v", len(out.Files), err)
	}
	return string(out.Files[cfg.Out])
}

// TestServed compares the list of a server that is generated from a list with that list, and the code generated from
// both.
func TestServed(t *testing.T) {
	url := serve(t)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want := tools(t, read(t, s.path()))
			list := record(t, generator.RecordConfig{URL: url + "/" + s.name})
			if d := cmp.Diff(want, tools(t, list)); d != "" {
				t.Errorf("the list is another (-list +served):\n%s", d)
			}
			if d := cmp.Diff(generate(t, s, read(t, s.path())), generate(t, s, list)); d != "" {
				t.Errorf("the list of the generated server generates another file (-list +served):\n%s", d)
			}
			// In 2026-07-28 no tool states whether it may be a task.
			for _, tool := range want {
				delete(tool, "execution")
			}
			got := tools(t, record(t, generator.RecordConfig{URL: url + "/" + s.name, Revision: "2026-07-28"}))
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the list is another in 2026-07-28 (-list +served):\n%s", d)
			}
		})
	}
}

// run makes the program's calls of a server and returns their output.
func run(t *testing.T, name string, at ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, build(t), append([]string{name}, at...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	return string(out)
}

// TestCalls calls published servers with the generated clients.
func TestCalls(t *testing.T) {
	files, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"everything":         "The sum of 40 and 2 is 42.\n",
		"filesystem":         `{"content":"typed"}` + "\n",
		"sequentialthinking": `{"thoughtNumber":1,"totalThoughts":2,"nextThoughtNeeded":true,"branches":[],"thoughtHistoryLength":1}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range servers {
				if s.name != name {
					continue
				}
				if name == "filesystem" {
					s.args = []string{files}
				}
				if got := run(t, name, s.command(t)...); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
}

// TestFake calls the published memory server and the fake of it in Go. The results are the same.
func TestFake(t *testing.T) {
	t.Setenv("MEMORY_FILE_PATH", filepath.Join(t.TempDir(), "memory.jsonl"))
	for _, s := range servers {
		if s.name == "memory" {
			want := run(t, "memory", s.command(t)...)
			if d := cmp.Diff(want, run(t, "memory", serve(t)+"/memory")); d != "" {
				t.Errorf("the fake differs (-published +fake):\n%s", d)
			}
		}
	}
}
