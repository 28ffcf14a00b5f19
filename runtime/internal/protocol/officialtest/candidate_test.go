//go:build long

package officialtest

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The tests of 2025-11-25 also cover the parts that the release candidate has in common with it. These tests repeat
// them in the candidate.

func TestCandidateTaskObject(t *testing.T) {
	rules.Covers(t, "B-24", "B-50", "B-52", "B-54", "B-55", "B-61")
	checkTaskObject(t, wiretest.CandidateRevision)
}

func TestCandidateOtherRequests(t *testing.T) {
	rules.Covers(t, "B-05", "B-21")
	checkOtherRequests(t, wiretest.CandidateRevision)
}

func TestCandidateUndeclared(t *testing.T) {
	rules.Covers(t, "B-06", "B-07")
	checkUndeclared(t, wiretest.CandidateRevision)
}

func TestCandidateCreate(t *testing.T) {
	rules.Covers(t, "B-15", "B-16", "B-17", "B-18", "B-19", "B-27", "B-51", "B-92")
	checkCreate(t, wiretest.CandidateRevision)
}

func TestCandidateCreateMeta(t *testing.T) {
	rules.Covers(t, "B-20", "B-25")
	checkCreateMeta(t, wiretest.CandidateRevision)
}

func TestCandidateTaskSupport(t *testing.T) {
	rules.Covers(t, "B-10", "B-11", "B-13", "B-14")
	checkTaskSupport(t, wiretest.CandidateRevision)
}

func TestCandidateResult(t *testing.T) {
	rules.Covers(t, "B-33", "B-35", "B-36", "B-37", "B-38", "B-39", "B-40")
	checkResult(t, wiretest.CandidateRevision)
}

func TestCandidateFailed(t *testing.T) {
	rules.Covers(t, "B-79", "B-82", "B-83", "B-84")
	checkFailed(t, wiretest.CandidateRevision)
}

func TestCandidateRelatedTask(t *testing.T) {
	rules.Covers(t, "B-58", "B-60")
	checkRelatedTask(t, wiretest.CandidateRevision)
}

func TestCandidateList(t *testing.T) {
	rules.Covers(t, "B-64", "B-65", "B-67", "B-78", "B-89")
	checkList(t, wiretest.CandidateRevision)
}

func TestCandidateCancel(t *testing.T) {
	rules.Covers(t, "B-69", "B-71", "B-73", "B-74", "B-77")
	checkCancel(t, wiretest.CandidateRevision)
}

func TestCandidateProgress(t *testing.T) {
	rules.Covers(t, "B-56", "B-62", "B-63")
	checkProgress(t, wiretest.CandidateRevision)
}
