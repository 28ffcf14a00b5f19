//go:build long

package golden_test

import (
	"bytes"
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

// TestQuickstart runs the README's quickstart as it stands there.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	q := quickstart{t: t, root: root, dir: t.TempDir(), address: freeAddress(t)}
	var programs []string
	for _, b := range readmeBlocks(t) {
		lead := leadFile.FindStringSubmatch(b.lead)
		switch {
		case b.language == "go" && lead != nil && lead[1] == "In":
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
	q.serve("server")
	got := q.run(q.build("client"))
	// A slow machine may miss a stage between two polls.
	if stages := regexp.MustCompile(`(?m)^working .*\n`); stages.ReplaceAllString(got, "") != stages.ReplaceAllString(q.want, "") {
		t.Errorf("the client printed\n%s\nthe README says\n%s", got, q.want)
	}
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
