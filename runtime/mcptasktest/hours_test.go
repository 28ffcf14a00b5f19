package mcptasktest_test

import (
	"slices"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestSixHours runs 18 steps of 20 minutes each, and follows their progress.
func TestSixHours(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			conn := mcptasktest.Connect(t, revision, mcptasktest.Options{}, pipeline.CITools(ci{}))
			call, err := pipeline.NewCIClient(conn).StartRunPipeline(t.Context(), pipeline.RunInput{
				Repository: "https://example.com/shop", Steps: slices.Repeat([]string{"test"}, 18),
			})
			if err != nil {
				t.Fatal(err)
			}
			var messages []string
			for snapshot, err := range call.Updates(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				messages = append(messages, snapshot.Message)
			}
			if !slices.Contains(messages, "test (9/18)") {
				t.Errorf("the progress was %q", messages)
			}
			report, err := call.Wait(t.Context())
			if err != nil || len(report.Steps) != 18 {
				t.Errorf("%+v, %v", report, err)
			}
		})
	})
}
