// Package analyzer finds mistakes in packages that declare and implement tools, for go vet, editors and
// every other driver of golang.org/x/tools/go/analysis. Command mcptaskvet runs it.
//
// It finds generated files that are not what the generator would write now ([Stale]), directives that
// the generator would not take ([Directive]), handlers that cannot be stopped ([Context]) and questions
// that share the name of a step ([Step]). None of the analyzers uses facts, so that a driver runs them
// on the packages alone that it was asked for.
package analyzer

import "golang.org/x/tools/go/analysis"

// Analyzers are all of them. They are safe for concurrent use, as every analyzer is.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{Context, Directive, Stale, Step}
}

// Stale reports a generated file that is missing, left over, or not what the generator would write.
var Stale = &analysis.Analyzer{
	Name: "mcptaskstale",
	Doc: `report files that mcptaskgen would write otherwise

What the package declares is generated again, as its line for go generate says, or one in a folder above
that covers it, or else as mcptaskgen does without flags. A file that would change, is missing, or is left
over from declarations that are gone, is reported at that line, or at the first directive.

Files that are not the package's own are read too: schemas, lists of tools, the comments of other
packages' types. Where it has found the package clean before, go vet does not see that they have changed;
mcptaskvet by itself does.`,
	Requires:         []*analysis.Analyzer{reading},
	RunDespiteErrors: true,
	Run: func(pass *analysis.Pass) (any, error) {
		return nil, report(pass, pass.ResultOf[reading].(*findings).stale)
	},
}

// Directive reports what the generator would not take, also where it never runs.
var Directive = &analysis.Analyzer{
	Name: "mcptaskdirective",
	Doc: `report mcptask directives that are misplaced or wrong

These are the errors of mcptaskgen, also in packages that it never runs on: a directive that attaches to
nothing, looks like one and is none, has an unknown key, or stands above a method that is no tool.`,
	Requires:         []*analysis.Analyzer{reading},
	RunDespiteErrors: true,
	Run: func(pass *analysis.Pass) (any, error) {
		return nil, report(pass, pass.ResultOf[reading].(*findings).mistakes)
	},
}

func report(pass *analysis.Pass, diagnostics []analysis.Diagnostic) error {
	for _, d := range diagnostics {
		pass.Report(d)
	}
	return nil
}
