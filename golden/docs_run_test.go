package golden_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pages"
)

// TestDocsCompile vets all code that the pages put "In" a file, runs the commands of consoles, and looks for the parts
// of the generated file that the pages show. TestDocsTemporal in examples/temporal does so for the page about Temporal.
func TestDocsCompile(t *testing.T) {
	t.Parallel()
	m := makeDocsModule(t)
	t.Run("vet", func(t *testing.T) {
		t.Parallel()
		m.in(t).run("go", "vet", "./...")
	})
	t.Run("consoles", func(t *testing.T) {
		t.Parallel()
		for _, b := range m.consoles {
			m.in(t).checkConsole(b)
		}
	})
	generated := readFile(t, filepath.Join(m.dir, filepath.FromSlash(byHandOutput)))
	for _, b := range m.shown {
		if !strings.Contains(generated, b.Code) {
			t.Errorf("%s: the generator does not write this code into %s", b.At, byHandOutput)
		}
	}
}

// docsModule is the module that the pages' code makes.
type docsModule struct {
	t         *testing.T
	root, dir string
	address   string // of the server by hand
	consoles  []pages.Block
	shown     []pages.Block // parts of the generated file of the program by hand
	printed   string        // the output of the client by hand, as the page says
}

// in returns the module for a subtest.
func (m docsModule) in(t *testing.T) docsModule {
	m.t = t
	return m
}

// makeDocsModule makes the module of docs/by-hand.md, from this checkout as "Try an unpublished clone" says. It writes all
// code of the pages into it and generates.
func makeDocsModule(t *testing.T) docsModule {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	m := docsModule{t: t, root: root, dir: t.TempDir(), address: freeAddress(t)}
	m.run("go", "mod", "init", "example.com/builds")
	files, cloned := map[string]string{}, false
	for _, p := range readPages(t) {
		if p.Name == pages.Temporal {
			continue // TestDocsTemporal in examples/temporal
		}
		for _, b := range p.Blocks {
			relation, name := b.File()
			switch {
			case relation == "In":
				if files[name] != "" {
					t.Errorf("%s: another block is In %s too", b.At, name)
				}
				files[name] = b.Code
			case relation == "From" && name == byHandOutput:
				m.shown = append(m.shown, b)
			case b.Language == "console":
				m.consoles = append(m.consoles, b)
			case b.Language == "text" && strings.HasSuffix(b.Lead, "the client has printed:"):
				m.printed = b.Code
			case b.Language == "sh" && strings.HasPrefix(b.Code, "git clone "):
				m.runClone(b)
				cloned = true
			}
		}
	}
	if m.printed == "" || !cloned || len(m.consoles) == 0 || len(m.shown) == 0 {
		t.Fatalf("the pages have no output of the client, no clone, no console or no generated code: %q, %v, %d, %d",
			m.printed, cloned, len(m.consoles), len(m.shown))
	}
	for name, code := range files {
		// The port is free on the reader's machine; here it need not be. Work of a second takes less here.
		code = strings.NewReplacer("127.0.0.1:8080", m.address, "time.After(time.Second)", "time.After(time.Second / 20)").Replace(code)
		writeFile(t, filepath.Join(m.dir, filepath.FromSlash(name)), code)
	}
	tools := readFile(t, "tools/pipeline/tools.json")
	writeFile(t, filepath.Join(m.dir, "search", "search.json"), tools)
	m.tidy()
	m.run("go", "generate", "./...")
	return m
}

// runClone runs the lines that use a clone, with this checkout in the place of the clone.
func (m docsModule) runClone(b pages.Block) {
	m.t.Helper()
	for line := range strings.Lines(b.Code) {
		words := strings.Fields(line)
		switch {
		case words[0] == "git":
		case strings.Join(words, " ") == "go mod tidy":
			m.tidy()
		default:
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "=../mcptaskgen", "="+m.root)
			}
			m.run(words[0], words[1:]...)
		}
	}
}

// tidy runs go mod tidy, which looks for more modules than a build does.
func (m docsModule) tidy() {
	m.t.Helper()
	cmd := m.prepare(m.t.Context(), "go", "mod", "tidy")
	if out, err := cmd.CombinedOutput(); err != nil {
		skipWithout(m.t, "go mod tidy finds no modules: it needs a module proxy or a full module cache: "+string(out))
	}
}

// checkConsole runs the commands of a console and compares their output. A line of dots stands for any lines.
func (m docsModule) checkConsole(b pages.Block) {
	m.t.Helper()
	for _, session := range strings.Split("\n"+b.Code, "\n$ ")[1:] {
		command, want, _ := strings.Cut(session, "\n")
		words := strings.Fields(command)
		if words[0] == "mcptaskgen" {
			words = append([]string{"go", "tool"}, words...)
		}
		got := m.run(words[0], words[1:]...)
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), regexp.QuoteMeta("...\n"), "(?:.*\n)*")
		if !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
			m.t.Errorf("%s: %s prints\n%s", b.At, command, got)
		}
	}
}

func (m docsModule) prepare(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
	return cmd
}

// run runs a program in the module and returns its standard output.
func (m docsModule) run(program string, args ...string) string {
	m.t.Helper()
	cmd := m.prepare(m.t.Context(), program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.Bytes())
	}
	return string(out)
}

// skipWithout skips the test. It fails the test if everything has to run by MCPTASK_REQUIRE.
func skipWithout(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("MCPTASK_REQUIRE") == "all" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// freeAddress returns an address with a port that was free a moment ago. Its port is none of those that systems give to
// connections, of which other tests make many.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+rand.N(10_000)))
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
