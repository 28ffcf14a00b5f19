// Mcptaskvet finds mistakes in packages that declare tools. Run it as go vet
// -vettool=$(which mcptaskvet) ./... or as mcptaskvet ./... See mcptaskvet help.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/analyzer"
)

// exitFindings is the exit code of multichecker if it has findings.
const exitFindings = 3

func main() {
	if reportStale(os.Args[1:]) {
		os.Exit(exitFindings)
	}
	// multichecker does the work of unitchecker when go vet calls the program.
	multichecker.Main(analyzer.Analyzers()...)
}

// reportStale reports stale files of packages that do not compile, and whether there are any. The
// compiler's errors, which multichecker prints first, come from these files as a rule.
func reportStale(args []string) bool {
	first := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if first < 0 || args[first] == "help" || strings.HasSuffix(args[first], ".cfg") {
		return false // without packages, or called by go vet
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule}, args[first:]...)
	if err != nil {
		return false // multichecker reports the same
	}
	broken := slices.DeleteFunc(loaded, func(p *packages.Package) bool { return len(p.Errors) == 0 || len(p.Syntax) == 0 })
	graph, err := checker.Analyze([]*analysis.Analyzer{analyzer.Stale}, broken, nil)
	if err != nil {
		return false
	}
	stale := slices.ContainsFunc(graph.Roots, func(action *checker.Action) bool { return len(action.Diagnostics) > 0 })
	if stale && graph.PrintText(os.Stderr, -1) == nil {
		fmt.Fprintln(os.Stderr, "mcptaskvet: the package does not compile, perhaps for that reason; nothing else was checked")
	}
	return stale
}
