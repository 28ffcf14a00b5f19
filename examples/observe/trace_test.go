//go:build long

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/replicas"
	"github.com/mcptaskgen/mcptaskgen/examples/observe/lab"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/oteltask"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// The numbers of the kinds of spans.
const (
	kindServer = 2
	kindClient = 3
)

// replica is the lab in a process of its own.
type replica struct {
	command                *exec.Cmd
	url, probesURL, traces string
	isKilled               bool
}

// startReplica starts the lab on a store.
func startReplica(t *testing.T, store, traces string) *replica {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{traces: traces}
	r.command = exec.Command(self, "-http", "127.0.0.1:0", "-probes", "127.0.0.1:0", "-load=false", "-store", store, "-traces", traces)
	r.command.Stderr = os.Stderr
	stdout, err := r.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.isKilled {
			return
		}
		if err := errors.Join(r.command.Process.Signal(os.Interrupt), r.command.Wait()); err != nil {
			t.Errorf("the lab did not stop cleanly: %v", err)
		}
	})
	lines := bufio.NewScanner(stdout)
	for r.probesURL == "" {
		if !lines.Scan() {
			t.Fatalf("the lab did not tell its addresses: %v", lines.Err())
		}
		if url, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			r.url = url
		}
		if url, ok := strings.CutPrefix(lines.Text(), "metrics "); ok {
			r.probesURL = strings.TrimSuffix(url, "/metrics")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return r
}

// kill ends the process as a crash does.
func (r *replica) kill(t *testing.T) {
	t.Helper()
	r.isKilled = true
	if err := r.command.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := r.command.Wait(); err == nil {
		t.Error("the lab had ended before it was killed")
	}
}

// find returns the spans of a file that have a name and a kind. A kind of 0 means any.
func find(t *testing.T, file, name string, kind int) (found []span) {
	t.Helper()
	for _, s := range readSpans(t, file) {
		if s.Name == name && (kind == 0 || s.SpanKind == kind) {
			found = append(found, s)
		}
	}
	return found
}

// TestTrace follows a trace from an agent through its client and a replica to a worker that is killed. Another replica
// runs the task again: in a trace of its own, which the link to the call joins to the agent's.
func TestTrace(t *testing.T) {
	peer.AsProgram(t)
	directory := t.TempDir()
	store := filepath.Join(directory, "tasks.db")
	one := startReplica(t, store, filepath.Join(directory, "one.json"))
	two := startReplica(t, store, filepath.Join(directory, "two.json"))
	proxy, err := replicas.NewProxy(one.url, two.url)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(wirecheck.Handler(t, proxy))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })

	file := filepath.Join(directory, "agent.json")
	agent, err := newTelemetry(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.shutDown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	const call = "tools/call print_photo"
	var killed, other *replica
	conn, err := gosdk.Connect(t.Context(), web.URL+"/mcp", gosdk.ClientOptions{
		Revision: mcptask.Revision20260728,
		Hooks:    []taskserver.Hooks{oteltask.Hooks(oteltask.WithTracerProvider(agent.tracers), oteltask.WithMeterProvider(agent.meters))},
		Answer: lab.AnswerPaper(func(context.Context, mcptask.Question) (lab.Paper, error) {
			if killed == nil { // in the middle of the run that asks
				killed, other = one, two
				if len(find(t, two.traces, call, kindServer)) > 0 {
					killed, other = two, one
				}
				killed.kill(t)
			}
			return lab.Paper{Glossy: true}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, root := agent.tracers.Tracer("agent").Start(t.Context(), "agent")
	photo, err := lab.NewLabClient(conn).PrintPhoto(ctx, lab.PrintInput{Photo: "sunset"})
	root.End()
	if err != nil || photo != (lab.Print{Photo: "sunset", Glossy: true, Run: 2}) {
		t.Fatalf("%+v, %v", photo, err)
	}

	const run = "mcptask.run print_photo"
	eventually(t, func() string { // the client may have the result before the run has told its end
		if len(find(t, other.traces, run, 0)) == 0 {
			return "no span of the second run"
		}
		return ""
	})
	agents, sent := find(t, file, "agent", 0), find(t, file, call, kindClient)
	received, runs := find(t, killed.traces, call, kindServer), find(t, other.traces, run, 0)
	if len(agents) != 1 || len(sent) != 1 || len(received) != 1 || len(runs) != 1 {
		t.Fatalf("spans of the agent %+v, its client %+v, the server %+v, the second run %+v", agents, sent, received, runs)
	}
	if sent[0].Parent != agents[0].SpanContext || received[0].Parent != sent[0].SpanContext {
		t.Errorf("the client's span %+v is not the agent's %+v, or not the parent of the server's %+v", sent[0], agents[0], received[0])
	}
	again := runs[0]
	if again.SpanContext.TraceID == agents[0].SpanContext.TraceID || strings.Trim(again.Parent.SpanID, "0") != "" {
		t.Errorf("the second run is not in a trace of its own: %+v", again)
	}
	if len(again.Links) != 1 || again.Links[0].SpanContext != received[0].SpanContext {
		t.Errorf("the second run %+v has no link to the call %+v", again, received[0])
	}
	if attempt := again.attribute("mcptask.attempt"); attempt != float64(2) {
		t.Errorf("the second run is attempt %v", attempt)
	}
	if task := again.attribute("mcptask.task.id"); task == nil || task != received[0].attribute("mcptask.task.id") {
		t.Errorf("the second run is of the task %v, the call of %v", task, received[0].attribute("mcptask.task.id"))
	}
	if first := find(t, killed.traces, run, 0); len(first) != 0 {
		t.Errorf("the killed run has a span with an end: %+v", first)
	}
	lost := regexp.MustCompile(`(?m)^mcptask_runs_lost_total\{gen_ai_tool_name="print_photo".*\} 1$`)
	if _, metrics := fetch(t, other.probesURL+"/metrics"); !lost.MatchString(metrics) {
		t.Errorf("the lost run was not counted:\n%s", metrics)
	}
}
