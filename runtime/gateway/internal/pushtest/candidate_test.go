//go:build long

package pushtest

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The tests of 2025-11-25 also cover what the release candidate has in common with it. These tests repeat them in the
// candidate.

func TestCandidateQuestionStreams(t *testing.T) {
	rules.Covers(t, "B-46", "B-47", "B-49", "B-56", "B-57")
	checkQuestionStreams(t, wiretest.CandidateRevision)
}

func TestCandidateRemoteQuestions(t *testing.T) {
	rules.Covers(t, "B-15", "B-16", "B-47", "B-56", "B-57", "B-59", "B-43")
	checkRemoteQuestions(t, wiretest.CandidateRevision)
}

func TestCandidateRemoteTakenBack(t *testing.T) {
	rules.Covers(t, "B-68", "B-69", "B-76")
	t.Parallel()
	checkTakenBack(t, wiretest.CandidateRevision, true)
	checkRemoteCancels(t, wiretest.CandidateRevision)
}

func TestCandidateStatusNotifications(t *testing.T) {
	rules.Covers(t, "B-41", "B-42", "B-45")
	checkStatusNotifications(t, wiretest.CandidateRevision)
}
