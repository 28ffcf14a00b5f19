package wiretest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
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
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// serveStdio runs the test binary as a server in a process of its own.
func serveStdio() error {
	var impl pipeline.CI = CI{}
	if os.Getenv(EnvServer) == "broken" {
		impl = broken{}
	}
	options, tools := taskserver.Options{Limits: NoPollLimits}, pipeline.CITools(impl)
	negotiated := LegacyRevision
	if revision := os.Getenv(EnvRevision); revision != "" {
		options.Revisions, tools.Capabilities = []string{revision}, mcptask.Declared()
		if revision != mcptask.RevisionSEP1686 { // its requests show the revision
			negotiated = revision
		}
	}
	tasks, err := taskserver.New(options, tools)
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
	if text := faults(); text != "" { // the process of the tests reads it
		file := filepath.Join(os.Getenv(wireFaults), strconv.Itoa(os.Getpid()))
		err = errors.Join(err, errors.New(text), os.WriteFile(file, []byte(text), 0o600))
	}
	return errors.Join(err, tasks.Close())
}

// servePrinting serves gosdk.StdioTransport, with a tool that prints to standard output in every way that a handler has.
func servePrinting() error {
	early := log.New(os.Stdout, "", 0)
	print := mcptask.NewTool(mcptask.ToolSpec{Name: "print", InputSchema: OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
			fmt.Print("from fmt") // without the end of a line, it would swallow the next message
			early.Print("from a logger")
			child := exec.CommandContext(ctx, os.Args[0])
			child.Env = append(os.Environ(), EnvServer+"=echo")
			child.Stdout = os.Stdout
			return "printed", child.Run()
		})
	tasks, err := taskserver.New(taskserver.Options{}, mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: []mcptask.Tool{print}})
	if err != nil {
		return err
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	err = sdk.Run(context.Background(), gosdk.StdioTransport(tasks))
	fmt.Println("after the session")
	return errors.Join(err, tasks.Close())
}

// wireFaults is the directory in which a server in its own process records what it should not have
// sent.
const wireFaults = "GOSDK_TEST_WIRE_FAULTS"

// EnvServer makes the test binary run as a server.
const EnvServer = "GOSDK_TEST_STDIO_SERVER"

// EnvRevision names the only revision that the server speaks, if it is set.
const EnvRevision = "GOSDK_TEST_STDIO_REVISION"

// broken ends the process, or writes a line to its standard output that is no message.
type broken struct{ CI }

func (broken) RunPipeline(_ context.Context, _ *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	time.Sleep(200 * time.Millisecond)
	if in.Branch == "stray" {
		fmt.Println("stray")
		return pipeline.RunReport{}, nil
	}
	os.Exit(3)
	return pipeline.RunReport{}, nil
}

func (broken) LintFile(context.Context, pipeline.LintInput) (pipeline.LintReport, error) {
	os.Exit(3)
	return pipeline.LintReport{}, nil
}

// StdioServer returns a command that runs the test binary as a server.
func StdioServer(t *testing.T) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), EnvServer+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// pipes is a client of literal JSON on pipes to a subprocess.
type pipes struct {
	Early []map[string]any // read but not asked for yet
	t     *testing.T
	Cmd   *exec.Cmd
	in    interface{ Write([]byte) (int, error) }
	Close func() error
	Lines chan map[string]any
}

// NewPipes starts a server and connects to it.
func NewPipes(t *testing.T) *pipes {
	t.Helper()
	return NewPipesIn(t, LegacyRevision)
}

// NewPipesIn is NewPipes for a server of the candidate, if that is the revision.
func NewPipesIn(t *testing.T, revision string) *pipes {
	t.Helper()
	cmd := StdioServer(t)
	if revision == CandidateRevision {
		cmd.Env = append(cmd.Env, EnvRevision+"="+revision)
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

// Say sends a line.
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
			p.t.Fatalf("no such message, only %v", p.Early)
		}
	}
}

// Wait waits for the server to end. It waits for the end of the output first, because Cmd.Wait cuts
// it off.
func (p *pipes) Wait() error {
	for range p.Lines {
	}
	return p.Cmd.Wait()
}

// Response returns the response to a request.
func (p *pipes) Response(id float64) map[string]any {
	p.t.Helper()
	return p.Hear(func(m map[string]any) bool { return m["id"] == id && m["method"] == nil })
}

// Dig returns the member of a message at a path. It fails the test if there is none.
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
