// The servers below this directory are written on two SDKs, each before and after one of its tools became a task. This
// program measures what that costs: the lines that change, the modules in go.mod, the release of Go, and the binary.
//
//	go run ./examples/brownfield        # prints the table
//	go run ./examples/brownfield -write # writes it into the pages
//
// It builds each server in a module of its own. It needs the Go command, git, and the module proxy or a full cache.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	product = "github.com/mcptaskgen/mcptaskgen"
	goSDK   = "github.com/modelcontextprotocol/go-sdk"
	mcpGo   = "github.com/mark3labs/mcp-go"
)

// server is a server of which there is a version before and one after.
type server struct {
	name  string
	sdk   string   // its module
	ours  []string // modules of this repository that the version after uses
	about string
}

var servers = []server{
	{"sessions", goSDK, []string{""}, "a server for each session, standard input and output and HTTP"},
	{"bearer", goSDK, []string{""}, "HTTP with its own bearer tokens and logs"},
	{"restore", mcpGo, []string{"", "/runtime/mcpgo", "/runtime/sqlite"}, "HTTP, tasks on SQLite"},
	{"render", mcpGo, []string{"", "/runtime/mcpgo"}, "standard input and output"},
}

// pages maps the pages that show the costs to the SDK of their servers.
var pages = map[string]string{"adopt-go-sdk.md": goSDK, "adopt-mcp-go.md": mcpGo}

// The marks in a page.
const (
	beginMark = "<!-- What follows is measured: make cost -->\n"
	endMark   = "<!-- Here ends what is measured. -->\n"
)

// cost is what a version of a server takes.
type cost struct {
	direct, indirect int               // modules that go.mod requires
	versions         map[string]string // of these modules
	release          string            // of Go
	size, stripped   int64             // of the binary, in bytes
}

// workshop builds servers in modules of their own.
type workshop struct {
	root, dir string
}

// runCommand runs a command in a directory and returns its output.
func runCommand(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, faults.String())
	}
	return out, nil
}

// changedLines returns how many lines of a server go and come.
func changedLines(ctx context.Context, root, name string) (removed, added int, err error) {
	dir := filepath.Join(root, "examples", "brownfield")
	out, err := runCommand(ctx, dir, "git", "diff", "--no-index", "--numstat", name+"-before/main.go", name+"-after/main.go")
	if failed := new(exec.ExitError); errors.As(err, &failed) && failed.ExitCode() == 1 { // they differ
		err = nil
	}
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(string(out), &added, &removed)
	return removed, added, err
}

// measure builds a version of a server. It requires the modules with the versions that the examples require.
func (w workshop) measure(ctx context.Context, s server, version string, ours []string) (cost, error) {
	dir := filepath.Join(w.dir, s.name+version)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return cost{}, err
	}
	source, err := os.ReadFile(filepath.Join(w.root, "examples", "brownfield", s.name+version, "main.go"))
	if err != nil {
		return cost{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), source, 0o600); err != nil {
		return cost{}, err
	}
	sdk, err := runCommand(ctx, filepath.Join(w.root, "examples"), "go", "list", "-m", "-f", "{{.Path}}@{{.Version}}", s.sdk)
	if err != nil {
		return cost{}, err
	}
	edit := []string{"mod", "edit", "-require=" + strings.TrimSpace(string(sdk))}
	for _, module := range ours {
		edit = append(edit, "-require="+product+module+"@v0.1.0", "-replace="+product+module+"="+w.root+module)
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/" + s.name}, {"mod", "edit", "-go=1.24.0"}, edit, {"mod", "tidy"},
		{"build", "-trimpath", "-o", "whole", "."}, {"build", "-trimpath", "-ldflags=-s -w", "-o", "stripped", "."},
	} {
		if _, err := runCommand(ctx, dir, "go", args...); err != nil {
			return cost{}, err
		}
	}
	return readCost(ctx, dir)
}

// readCost reads the costs of a module that is built.
func readCost(ctx context.Context, dir string) (c cost, err error) {
	out, err := runCommand(ctx, dir, "go", "mod", "edit", "-json")
	if err != nil {
		return c, err
	}
	var module struct {
		Go      string
		Require []struct {
			Path, Version string
			Indirect      bool
		}
	}
	if err := json.Unmarshal(out, &module); err != nil {
		return c, err
	}
	c.release, c.versions = module.Go, map[string]string{}
	for _, required := range module.Require {
		c.versions[required.Path] = required.Version
		if required.Indirect {
			c.indirect++
		} else {
			c.direct++
		}
	}
	for name, size := range map[string]*int64{"whole": &c.size, "stripped": &c.stripped} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return c, err
		}
		*size = info.Size()
	}
	return c, nil
}

// describeServer returns the row of a server, for the page of its SDK.
func (w workshop) describeServer(ctx context.Context, s server) (string, error) {
	removed, added, err := changedLines(ctx, w.root, s.name)
	if err != nil {
		return "", err
	}
	before, err := w.measure(ctx, s, "-before", nil)
	if err != nil {
		return "", err
	}
	after, err := w.measure(ctx, s, "-after", s.ours)
	if err != nil {
		return "", err
	}
	raised := 0
	for path, version := range before.versions {
		if now, ok := after.versions[path]; ok && now != version {
			raised++
		}
	}
	megabytes := func(size int64) string { return strconv.FormatFloat(float64(size)/1e6, 'f', 1, 64) }
	return fmt.Sprintf("| `%s`: %s | +%d -%d | %d + %d | %d + %d | %d | %s | %s | %s to %s | %s to %s |\n", s.name, s.about, added, removed,
		before.direct, before.indirect, after.direct, after.indirect, raised, before.release, after.release,
		megabytes(before.size), megabytes(after.size), megabytes(before.stripped), megabytes(after.stripped)), nil
}

const header = `| server | lines | required modules before, direct + indirect | after | of them raised | Go before | after | binary, MB | stripped, MB |
|---|---|---|---|---|---|---|---|---|
`

// update writes a table into a page.
func update(path, table string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(page), beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !begun || !ended {
		return fmt.Errorf("%s has no marks around the measured table", path)
	}
	return os.WriteFile(path, []byte(before+beginMark+"\n"+table+"\n"+endMark+after), 0o644)
}

func measureAll(ctx context.Context, write bool) (err error) {
	root, err := runCommand(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "brownfield")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := workshop{strings.TrimSpace(string(root)), dir}
	tables := map[string]string{goSDK: header, mcpGo: header}
	for _, s := range servers {
		row, err := w.describeServer(ctx, s)
		if err != nil {
			return err
		}
		fmt.Print(row)
		tables[s.sdk] += row
	}
	if !write {
		return nil
	}
	for page, sdk := range pages {
		if err := update(filepath.Join(w.root, "docs", page), tables[sdk]); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	write := flag.Bool("write", false, "write the figures into the pages")
	flag.Parse()
	if err := measureAll(context.Background(), *write); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
