//go:build long

package edgetest

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The tests of 2025-11-25 also cover what the release candidate has in common with it. These tests repeat them in the
// candidate.

func TestCandidateSessions(t *testing.T) {
	rules.Covers(t, "B-34")
	checkSessions(t, wiretest.CandidateRevision)
}

func TestCandidateCancelledResult(t *testing.T) {
	rules.Covers(t, "B-69")
	checkCancelledResult(t, wiretest.CandidateRevision)
}

func TestCandidateExpiry(t *testing.T) {
	rules.Covers(t, "B-53", "B-81")
	checkExpiry(t, wiretest.CandidateRevision)
}
