package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// scenarios are the suite's for tasks, with the checks that each passes, 44 together. The
// suite leaves them out of its own runs, so they are named here; it skips
// tasks-status-notifications by itself.
var scenarios = map[string]int{
	"tasks-lifecycle":              9,
	"tasks-capability-negotiation": 5,
	"tasks-wire-fields":            4,
	"tasks-request-state-removal":  3,
	"tasks-mrtr-input":             4,
	"tasks-request-headers":        5,
	"tasks-dispatch-and-envelope":  9,
	"tasks-status-notifications":   0,
	"tasks-required-task-error":    3,
	"tasks-mrtr-composition":       2,
}

var score = regexp.MustCompile(`Passed: (\d+)/(\d+), (\d+) failed`)

// TestOfficialSuite runs the scenarios against this server, with replies as event streams.
func TestOfficialSuite(t *testing.T) { runSuite(t, findSuite(t), peer.ServeSelf(t)) }

// findSuite returns the path of the suite. It skips the test if the suite is missing.
func findSuite(t *testing.T) string {
	t.Helper()
	suite, node := filepath.Join("node_modules", ".bin", "conformance"), filepath.Join("node_modules", "node", "bin")
	for _, path := range []string{suite, filepath.Join(node, "node")} {
		if _, err := os.Stat(path); err != nil {
			peer.Missing(t, "the official suite is missing: run npm ci in examples/conformance")
		}
	}
	node, err := filepath.Abs(node)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", node+string(os.PathListSeparator)+os.Getenv("PATH"))
	return suite
}

// runSuite runs the scenarios against the server at the URL.
func runSuite(t *testing.T, suite, url string) {
	t.Helper()
	for name, want := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := peer.Client(t, suite, "server", "--url", url, "--scenario", name, "-o", t.TempDir())
			match := score.FindStringSubmatch(out)
			if match == nil {
				t.Fatal("the suite gave no score")
			}
			if match[1] != strconv.Itoa(want) || match[3] != "0" {
				t.Errorf("%s, want %d passed", match[0], want)
			}
		})
	}
}
