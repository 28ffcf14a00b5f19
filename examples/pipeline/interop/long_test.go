//go:build long

package interop

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/replicas"
)

// serveReplicas starts three replicas of the example server on PostgreSQL, behind a proxy that
// hands each request to the next of them. It returns the URL, and the proxy.
func serveReplicas(t *testing.T) (string, *replicas.Proxy) {
	t.Helper()
	set := peer.BuildReplicas(t, "..", "-store", "postgres:"+peer.Database(t), "-session-key", "the-key-of-the-clients-has-32-bytes")
	return peer.Tap(t, set.URL), set.Proxy
}

// checkSpread checks that all replicas have answered requests of each session.
func checkSpread(t *testing.T, proxy *replicas.Proxy, sessions int) {
	t.Helper()
	all := proxy.Sessions()
	if len(all) != sessions {
		t.Errorf("%d sessions, want %d", len(all), sessions)
	}
	for _, answered := range all {
		if !slices.Equal(answered, []int{1, 2, 3}) {
			t.Errorf("only the replicas %v have answered requests of a session", answered)
		}
	}
}

func TestTypeScript1OverReplicas(t *testing.T) {
	node := node(t, "sdk")
	url, proxy := serveReplicas(t)
	passes(t, peer.Client(t, node, "sdk1.mjs", url, "replicas"), sdk1, sdk1HTTP)
	checkSpread(t, proxy, 2)
}

func TestTypeScript2OverReplicas(t *testing.T) {
	node := node(t, "ext-tasks")
	url, proxy := serveReplicas(t)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			passes(t, peer.Client(t, node, "client2.mjs", url, revision), client2)
		})
	}
	checkSpread(t, proxy, 1)
}

// killed has the steps of the TypeScript SDK 1.x while a replica is killed.
var killed = []string{
	"connect", "start tasks on all replicas", "all tasks end", "read all tasks again", "answer a question", "end the session",
}

// TestTypeScript1WithKilledReplica kills one of three replicas in the middle of a session that is
// spread over all of them.
func TestTypeScript1WithKilledReplica(t *testing.T) {
	node := node(t, "sdk")
	const token = "the-token-of-the-test"
	binary := peer.Build(t, "../../cluster")
	environment := append(os.Environ(),
		"MCPTASK_POSTGRES="+peer.Database(t), "MCPTASK_TOKEN="+token)
	set, err := replicas.Start(t.Context(), 3, func(ctx context.Context, number int) *exec.Cmd {
		cmd := exec.CommandContext(ctx, binary, "-replica", strconv.Itoa(number), "-http", "127.0.0.1:0", "-attached")
		cmd.Env = environment
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	passes(t, runWithKill(t, set, node, "replicas.mjs", peer.Tap(t, set.URL), token), killed)
	checkSpread(t, set.Proxy, 1)
}

// runWithKill runs a program and returns its output. When the program asks for it, a replica is
// killed.
func runWithKill(t *testing.T, set *replicas.Set, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		fmt.Fprintln(&out, lines.Text())
		if lines.Text() != "kill" {
			continue
		}
		if err := set.Kill(2); err != nil {
			t.Error(err)
		}
		if _, err := fmt.Fprintln(input, "killed"); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	t.Logf("%s", &out)
	return out.String()
}
