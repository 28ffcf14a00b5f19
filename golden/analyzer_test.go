package golden_test

import (
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/analyzer"
)

// TestAnalyzers runs the analyzers on the packages that users read. They find nothing.
func TestAnalyzers(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes |
			packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
		Context: t.Context(), Tests: true,
	}, "./...", "../examples/...")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := checker.Analyze(analyzer.Analyzers(), loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(loaded) * len(analyzer.Analyzers()); len(graph.Roots) != want || len(loaded) < 30 {
		t.Errorf("%d packages, %d analyses, want %d", len(loaded), len(graph.Roots), want)
	}
	for _, action := range graph.Roots {
		if action.Err != nil {
			t.Errorf("%s: %v", action, action.Err)
		}
		if action.Analyzer == analyzer.Stale && strings.Contains(action.Package.PkgPath, "/golden/compat/") {
			continue // the output of an earlier version stays as it is
		}
		for _, d := range action.Diagnostics {
			t.Errorf("%s: %s", action.Package.Fset.Position(d.Pos), d.Message)
		}
	}
}
