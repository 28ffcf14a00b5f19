package analyzer_test

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/mcptaskgen/mcptaskgen/generator/analyzer"
)

func TestAnalyzers(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	if err := analysis.Validate(analyzer.Analyzers()); err != nil {
		t.Error(err)
	}
	for _, test := range []struct {
		analyzer *analysis.Analyzer
		packages []string
	}{
		{analyzer.Context, []string{"./ci", "./handlers"}},
		{analyzer.Directive, []string{"./ci", "./directives", "./plain"}},
		{analyzer.Stale, []string{"./ci", "./leftover", "./missing", "./stale"}},
		{analyzer.Step, []string{"./ci", "./steps"}},
	} {
		t.Run(test.analyzer.Name, func(t *testing.T) {
			analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), test.analyzer, test.packages...)
		})
	}
}
