// Package analyzer finds mistakes in packages that declare tools. Its analyzers run
// in go vet, in editors and in every other driver of golang.org/x/tools/go/analysis. Command
// mcptaskvet runs them too.
//
// [Stale] finds generated files that are out of date. [Directive] finds directives that the generator refuses. [Code] finds
// error codes that a handler may not use. None of them uses facts, so a driver analyzes only the packages it was asked for.
package analyzer

import "golang.org/x/tools/go/analysis"

// Analyzers returns all analyzers. They are safe for concurrent use.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{Code, Directive, Stale}
}

// Stale reports a generated file that is missing, left over or out of date.
var Stale = newAnalyzer("mcptaskstale", `report generated files that are out of date

The package is generated again, as its //go:generate line says, or a line in a directory above that covers
the package. Without a line, mcptaskgen runs without flags. A file that would change, is missing, or is
left over from removed declarations is reported at that line, or at the first directive.

The result also depends on files outside the package: schemas, lists of tools, and the comments of other
packages' types. go vet caches a clean result and does not notice when these files change. Running
mcptaskvet directly does.`, func(f *findings) []analysis.Diagnostic { return f.stale })

// Directive reports mistakes in directives, even in packages that the generator never runs on.
var Directive = newAnalyzer("mcptaskdirective", `report mcptask directives that are misplaced or wrong

These are the errors of mcptaskgen, reported even in packages that it never runs on: a directive that is
attached to nothing, a comment that only looks like a directive, an unknown key, or a directive above a
method that is not a tool.`, func(f *findings) []analysis.Diagnostic { return f.mistakes })

// newAnalyzer returns an analyzer that reports some of the generator's findings.
func newAnalyzer(name, doc string, pick func(*findings) []analysis.Diagnostic) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: name, Doc: doc, Requires: []*analysis.Analyzer{generation}, RunDespiteErrors: true,
		Run: func(pass *analysis.Pass) (any, error) {
			for _, d := range pick(pass.ResultOf[generation].(*findings)) {
				pass.Report(d)
			}
			return nil, nil
		},
	}
}
