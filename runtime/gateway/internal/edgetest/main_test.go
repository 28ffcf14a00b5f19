package edgetest

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestMain lets the tests reach servers in memory.
func TestMain(m *testing.M) { wiretest.Main(m) }

// inBubble runs a parallel test in a bubble.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, test)
}

// eachPeer runs a test in both official revisions. Each has a bubble with a server, and a client
// whose principal is "a".
func eachPeer(t *testing.T, s wiretest.Setup, test func(t *testing.T, p *wiretest.Peer)) {
	t.Helper()
	t.Parallel()
	s.Bearer = true
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, _ := wiretest.ServeWith(t, s)
		test(t, wiretest.NewPeer(t, url, revision, "a"))
	})
}
