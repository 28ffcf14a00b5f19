package analyzer_test

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/mcptaskgen/mcptaskgen/generator/analyzer"
)

// TestAnalyzers runs all analyzers as one on all packages, because loading the packages and
// their imports takes longer than everything else.
func TestAnalyzers(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	if err := analysis.Validate(analyzer.Analyzers()); err != nil {
		t.Error(err)
	}
	all := &analysis.Analyzer{Name: "all", Doc: "all runs every analyzer", RunDespiteErrors: true}
	for _, one := range analyzer.Analyzers() {
		all.Requires = append(all.Requires, one.Requires...)
	}
	all.Run = func(pass *analysis.Pass) (any, error) {
		for _, one := range analyzer.Analyzers() {
			if _, err := one.Run(pass); err != nil {
				return nil, err
			}
		}
		return nil, nil //nolint:nilnil // no analyzer has a result
	}
	analysistest.Run(t, analysistest.TestData(), all,
		"./ci", "./codes", "./directives", "./leftover", "./missing", "./plain", "./stale")
}
