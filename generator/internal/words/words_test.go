package words_test

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

func TestForReader(t *testing.T) {
	for _, test := range []struct{ name, doc, want string }{
		{"RunPipeline", "RunPipeline builds one branch.", "Builds one branch."},
		{"Branch", "Branch is the branch to build.", "The branch to build."},
		{"Steps", "Steps are what ran.\n\nSteps may be empty.", "What ran.\n\nSteps may be empty."},
		{"Name", "Name, if set, names it.", "Name, if set, names it."},
		{"Run", "Runner of all jobs.", "Runner of all jobs."},
		{"Run", "Run", "Run"},
		{"Timeout", "Timeout of each carrier.", "Timeout of each carrier."},
		{"Priorities", "Priorities to look for", "Priorities to look for"},
		{"Passed", "Passed tells whether it passed.", "Tells whether it passed."},
		{"Limit", "Limit as a number", "Limit as a number"},
		{"Run", "in nanoseconds", "in nanoseconds"},
		{"Run", "", ""},
	} {
		if got := words.ForReader(test.name, test.doc); got != test.want {
			t.Errorf("%s: %q became %q, want %q", test.name, test.doc, got, test.want)
		}
	}
}
