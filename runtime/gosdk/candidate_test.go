//go:build long

package gosdk

import (
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The tests of 2025-11-25 also cover what the release candidate has in common with it. These tests repeat them in the
// candidate.

func TestCandidateReceiverDeclares(t *testing.T) {
	rules.Covers(t, "B-01", "B-02", "B-05", "B-06", "B-07", "B-21")
	checkReceiverDeclares(t, mcptask.Revision20251125RC)
}

func TestCandidateReceiverCreates(t *testing.T) {
	rules.Covers(t, "B-15", "B-16", "B-17", "B-18", "B-19", "B-24", "B-25", "B-26")
	eachWayIn(t, mcptask.Revision20251125RC, nil, checkReceiverCreates)
}

func TestCandidateReceiverTells(t *testing.T) {
	rules.Covers(t, "B-27", "B-50", "B-52", "B-55", "B-58", "B-60", "B-61")
	eachWayIn(t, mcptask.Revision20251125RC, nil, checkReceiverTells)
}

func TestCandidateReceiverResults(t *testing.T) {
	rules.Covers(t, "B-35", "B-36", "B-37", "B-38", "B-39", "B-40", "B-79", "B-82")
	eachWayIn(t, mcptask.Revision20251125RC, nil, checkReceiverResults)
}

func TestCandidateReceiverLists(t *testing.T) {
	rules.Covers(t, "B-64", "B-65", "B-67", "B-78")
	eachWayIn(t, mcptask.Revision20251125RC, nil, checkReceiverLists)
}

func TestCandidateReceiverCancels(t *testing.T) {
	rules.Covers(t, "B-30", "B-71", "B-72", "B-73", "B-74", "B-77")
	eachWayIn(t, mcptask.Revision20251125RC, oneAtATime, checkReceiverCancels)
}

func TestCandidateReceiverForgets(t *testing.T) {
	rules.Covers(t, "B-51", "B-53", "B-69", "B-92")
	eachWayIn(t, mcptask.Revision20251125RC, atMostAMinute, checkReceiverForgets)
}
