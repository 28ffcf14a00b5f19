//go:build long

package main

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// TestOfficialSuiteWithJSON runs the scenarios against this server, with replies as JSON.
func TestOfficialSuiteWithJSON(t *testing.T) { runSuite(t, findSuite(t), peer.ServeSelf(t, "-json")) }

// TestOfficialSuiteOverReplicas runs the scenarios against three replicas on PostgreSQL, behind a
// proxy that hands each request to the next of them.
func TestOfficialSuiteOverReplicas(t *testing.T) {
	suite := findSuite(t)
	set := peer.ServeReplicas(t, "-store", "postgres:"+peer.Database(t), "-session-key", "the-key-of-the-suite-has-32-bytes")
	runSuite(t, suite, peer.Tap(t, set.URL))
}
