package golden_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const modulePath = "github.com/mcptaskgen/mcptaskgen"

// block is fenced code of the README, with the line of text before it.
type block struct {
	line                 int
	language, lead, code string
}

var leadFile = regexp.MustCompile("(In|From) `([^`]+)`:$")

// TestReadme runs the quickstart as it stands there, and looks the other Go code up where the README
// says that it is from.
func TestReadme(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	q := quickstart{t: t, root: root, dir: t.TempDir(), address: freeAddress(t)}
	var programs []string
	for _, b := range readmeBlocks(t, filepath.Join(root, "README.md")) {
		lead := leadFile.FindStringSubmatch(b.lead)
		switch {
		case b.language == "go" && lead == nil:
			t.Errorf("README.md:%d: Go code after %q: nothing tests it; write In `file`: or From `file`: before it", b.line, b.lead)
		case lead != nil && lead[1] == "From":
			source, err := os.ReadFile(filepath.Join(root, lead[2]))
			if err != nil {
				t.Error(err)
			} else if !strings.Contains(string(source), b.code) {
				t.Errorf("README.md:%d: the code is not in %s any more", b.line, lead[2])
			}
		case b.language == "go":
			q.write(lead[2], b.code)
		case b.language == "sh" && q.started(b):
			for _, command := range strings.Split(strings.TrimSpace(b.code), "\n") {
				if program, ok := strings.CutPrefix(command, "go run ./"); ok {
					programs = append(programs, program)
					continue
				}
				q.command(command)
			}
		case b.language == "text":
			q.want = b.code
		}
	}
	if strings.Join(programs, " ") != "server client" {
		t.Fatalf("the quickstart runs %q", programs)
	}
	if t.Failed() {
		return
	}
	q.serve("server")
	got := q.run(q.build("client"))
	// A slow machine may miss a stage between two polls.
	if stages := regexp.MustCompile(`(?m)^working .*\n`); stages.ReplaceAllString(got, "") != stages.ReplaceAllString(q.want, "") {
		t.Errorf("the client printed\n%s\nthe README says\n%s", got, q.want)
	}
}

// readmeBlocks reads fenced code.
func readmeBlocks(t *testing.T, path string) (blocks []block) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	text := ""
	for i, line := range strings.Split(string(content), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{line: i + 1, language: fence, lead: text}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.code += line + "\n"
		case line != "":
			text = line
		}
	}
	if open != nil {
		t.Fatalf("README.md:%d: the block is not closed", open.line)
	}
	return blocks
}

// quickstart is the README's module, in a folder of the test.
type quickstart struct {
	t                  *testing.T
	root, dir, address string
	begun              bool
	want               string
}

// started says whether a block of commands belongs to the quickstart, which begins with its module.
func (q *quickstart) started(b block) bool {
	q.begun = q.begun || strings.HasPrefix(b.code, "go mod init ")
	return q.begun
}

func (q *quickstart) write(name, code string) {
	q.t.Helper()
	path := filepath.Join(q.dir, filepath.FromSlash(name))
	// The port is free on the reader's machine; here it need not be.
	code = strings.ReplaceAll(code, "127.0.0.1:8080", q.address)
	if err := os.WriteFile(path, []byte(code), 0o644); err != nil {
		q.t.Fatal(err)
	}
}

// command runs one line of the README. What would need a release is done with this checkout.
func (q *quickstart) command(command string) {
	q.t.Helper()
	switch words := strings.Fields(command); {
	case command == "go get -tool "+modulePath+"/cmd/mcptaskgen@latest":
		q.require()
	case command == "go mod tidy":
		// Nothing is left to do after require, and tidy would look further than a build.
	case words[0] == "mkdir":
		for _, name := range words[1:] {
			if err := os.Mkdir(filepath.Join(q.dir, name), 0o755); err != nil {
				q.t.Fatal(err)
			}
		}
	case words[0] == "go":
		q.run(words[0], words[1:]...)
	default:
		q.t.Fatalf("the test does not know the README's command %q", command)
	}
}

// require makes go.mod and go.sum what go get and go mod tidy would, had this checkout been released:
// with the versions that the checkout has.
func (q *quickstart) require() {
	q.t.Helper()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(q.root, name))
		if err != nil {
			q.t.Fatal(err)
		}
		if name == "go.mod" {
			content = bytes.Replace(content, []byte("module "+modulePath+"\n"), []byte("module example.com/quickstart\n"), 1)
			content = fmt.Appendf(content, "\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", modulePath, q.root)
		}
		if err := os.WriteFile(filepath.Join(q.dir, name), content, 0o644); err != nil {
			q.t.Fatal(err)
		}
	}
}

// run runs a program in the module and returns its standard output.
func (q *quickstart) run(program string, args ...string) string {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := q.prepare(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		q.t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.Bytes())
	}
	return string(out)
}

func (q *quickstart) prepare(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = q.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	return cmd
}

func (q *quickstart) build(name string) string {
	q.t.Helper()
	binary := filepath.Join(q.dir, name+".bin")
	q.run("go", "build", "-o", binary, "./"+name)
	return binary
}

// serve starts a program and waits until it listens.
func (q *quickstart) serve(name string) {
	q.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(q.t.Context()))
	cmd := q.prepare(ctx, q.build(name))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
	})
	dialer := net.Dialer{}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := dialer.DialContext(q.t.Context(), "tcp", q.address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			q.t.Fatalf("the server does not listen: %v", err)
		}
	}
}

// freeAddress is an address that nobody listened at a moment ago. Its port is none of those that
// systems give to connections, of which other tests make many.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(10_000))
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no port is free")
	return ""
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	anchor  = regexp.MustCompile(`\]\(([A-Z]+\.md)?#([^)]+)\)`)
	dropped = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// TestAnchors follows the links to sections.
func TestAnchors(t *testing.T) {
	sections := map[string]map[string]bool{}
	texts := map[string]string{}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name], sections[name] = string(text), map[string]bool{}
		for _, h := range heading.FindAllStringSubmatch(string(text), -1) {
			sections[name][strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
		}
	}
	for name, text := range texts {
		for _, link := range anchor.FindAllStringSubmatch(text, -1) {
			if to := cmp.Or(link[1], name); !sections[to][link[2]] {
				t.Errorf("%s: %s has no section #%s", name, to, link[2])
			}
		}
	}
}
