//go:build long

package edgetest

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// What the release candidate has in common with 2025-11-25 is shown by the tests of that
// revision. These repeat them in the candidate.

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
