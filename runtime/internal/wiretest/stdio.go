package wiretest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// serveStdio is what the test binary does as a subprocess: it is a server.
func serveStdio() error {
	var impl pipeline.CI = CI{}
	if os.Getenv(AsServer) == "broken" {
		impl = broken{}
	}
	options, tools := mcptask.Options{Limits: Hurried}, pipeline.CITools(impl)
	negotiated := LegacyRevision
	if revision := os.Getenv(StdioRevision); revision != "" {
		options.Revisions, tools.Capabilities = []string{revision}, mcptask.Declared()
		if revision != mcptask.RevisionSEP1686 { // which its requests show
			negotiated = revision
		}
	}
	tasks, err := mcptask.NewServer(options, tools)
	if err != nil {
		return err
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	in, out, faults, err := wirecheck.Process(negotiated, os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	err = sdk.Run(context.Background(), PipeTransport(tasks, in, out))
	if text := faults(); text != "" { // the tests' own process reads it
		file := filepath.Join(os.Getenv(wireFaults), strconv.Itoa(os.Getpid()))
		err = errors.Join(err, errors.New(text), os.WriteFile(file, []byte(text), 0o600))
	}
	return errors.Join(err, tasks.Close())
}

// wireFaults is the folder in which a server that is a process of its own says
// what it should not have sent.
const wireFaults = "GOSDK_TEST_WIRE_FAULTS"

const AsServer = "GOSDK_TEST_STDIO_SERVER"

// StdioRevision names the one revision that the server speaks, where it is set.
const StdioRevision = "GOSDK_TEST_STDIO_REVISION"

// broken ends the process, or spoils its standard output.
type broken struct{ CI }

func (broken) RunPipeline(ctx context.Context, _ *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	time.Sleep(200 * time.Millisecond)
	if in.Branch == "stray" {
		fmt.Println("stray")
		<-ctx.Done()
		return pipeline.RunReport{}, ctx.Err()
	}
	os.Exit(3)
	return pipeline.RunReport{}, nil
}

func (broken) LintFile(context.Context, pipeline.LintInput) (pipeline.LintReport, error) {
	os.Exit(3)
	return pipeline.LintReport{}, nil
}

func StdioServer(t *testing.T) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), AsServer+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// pipes is a literal client of a subprocess.
type pipes struct {
	Early []map[string]any // heard and not asked for yet
	t     *testing.T
	Cmd   *exec.Cmd
	in    interface{ Write([]byte) (int, error) }
	Close func() error
	Lines chan map[string]any
}

func NewPipes(t *testing.T) *pipes {
	t.Helper()
	return NewPipesIn(t, LegacyRevision)
}

// NewPipesIn is newPipes for a server that speaks the candidate, where it is the
// revision.
func NewPipesIn(t *testing.T, revision string) *pipes {
	t.Helper()
	cmd := StdioServer(t)
	if revision == CandidateRevision {
		cmd.Env = append(cmd.Env, StdioRevision+"="+revision)
	}
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
	p := &pipes{t: t, Cmd: cmd, in: in, Close: in.Close, Lines: make(chan map[string]any, 1000)}
	go func() {
		defer close(p.Lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var m map[string]any
			if err := json.Unmarshal(s.Bytes(), &m); err != nil || m["jsonrpc"] != "2.0" {
				t.Errorf("not protocol on standard output: %s", s.Text())
			}
			p.Lines <- m
		}
	}()
	return p
}

func (p *pipes) Say(format string, args ...any) {
	p.t.Helper()
	if _, err := p.in.Write([]byte(fmt.Sprintf(format, args...) + "\n")); err != nil {
		p.t.Fatal(err)
	}
}

// Hear returns the next message that fits.
func (p *pipes) Hear(fits func(map[string]any) bool) map[string]any {
	p.t.Helper()
	for i, m := range p.Early {
		if fits(m) {
			p.Early = slices.Delete(p.Early, i, i+1)
			return m
		}
	}
	timeout := time.After(Patience)
	for {
		select {
		case m, ok := <-p.Lines:
			if !ok {
				p.t.Fatal("the server has ended")
			}
			if fits(m) {
				return m
			}
			p.Early = append(p.Early, m) // a question may overtake the response to its call
		case <-timeout:
			p.t.Fatalf("nothing heard but %v", p.Early)
		}
	}
}

// Wait waits for the end of the server: of its output first, which cmd.Wait cuts off.
func (p *pipes) Wait() error {
	for range p.Lines {
	}
	return p.Cmd.Wait()
}

func (p *pipes) Response(id float64) map[string]any {
	p.t.Helper()
	return p.Hear(func(m map[string]any) bool { return m["id"] == id && m["method"] == nil })
}

func Dig(t *testing.T, m map[string]any, path ...string) any {
	t.Helper()
	var v any = m
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("no %v in %v", path, m)
		}
		v = object[name]
	}
	return v
}
