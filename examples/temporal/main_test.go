package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/examples/temporal/internal/temporalserver"
)

func TestMain(m *testing.M) { peer.Main(m, main) }

// TestTemporal runs the whole program against a Temporal server.
func TestTemporal(t *testing.T) {
	peer.AsProgram(t)
	server := temporalserver.ForTest(t)
	var out strings.Builder
	err := run(t.Context(), &out, mode{temporal: server.Address(), namespace: "default"})
	if err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	// Reports come at the pace of polls, so some may be missing. A worker on a busy machine may miss its heartbeats
	// too.
	want := regexp.MustCompile(`^started the server http://\S+/mcp and two workers, with Temporal at \S+
build_image is the task and the workflow \w+
build_image runs on worker-(\d)
killed worker-\d at layer \d+ of 40; .*
build_image runs on worker-(\d)
(?:build_image runs on .*
)*build_image completed on worker-\d in run \d
run_pipeline is the task \w+, and runs the workflow \w+/RunPipeline
(?:run_pipeline reports: (?:build \(0/3\)|test \(1/3\))
)*run_pipeline asks: Ship v1\.2\.0 to production\? The client says yes
(?:run_pipeline reports: .*
)*run_pipeline completed: \[build test ship]
$`)
	found := want.FindStringSubmatch(out.String())
	if found == nil {
		t.Fatalf("the program printed\n%s\nand not lines like\n%s", &out, want)
	}
	if found[1] == found[2] {
		t.Errorf("the task began and went on at worker-%s", found[1])
	}
}

// TestBadFlags checks that errors tell the way out.
func TestBadFlags(t *testing.T) {
	for want, m := range map[string]mode{
		"-role worker needs -temporal and -store":           {role: "worker", temporal: "127.0.0.1:7233"},
		`-role "client" is unknown: write server or worker`: {role: "client", temporal: "127.0.0.1:7233", store: "tasks.db"},
		"-store ":                 {role: "server", temporal: "127.0.0.1:7233", store: t.TempDir()},
		"-temporal 127.0.0.1:1: ": {temporal: "127.0.0.1:1", namespace: "default"},
	} {
		var out strings.Builder
		if err := run(t.Context(), &out, m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", m, err, want)
		}
	}
}
