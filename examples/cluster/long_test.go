//go:build long

package main

import (
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// TestCluster runs the example, which waits for the lease of the replica that it kills.
func TestCluster(t *testing.T) {
	peer.AsProgram(t)
	var out strings.Builder
	err := run(t.Context(), &out, mode{postgres: peer.Database(t)})
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"killed replica ", "10 of 10 tasks completed, ", "2 questions asked", "answered by the replicas [1 2 3]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
}
