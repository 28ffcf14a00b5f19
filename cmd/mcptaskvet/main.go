// Mcptaskvet finds mistakes in packages that declare and implement tools. Run it as go vet
// -vettool=$(which mcptaskvet) ./... or as mcptaskvet ./... See mcptaskvet help.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/mcptaskgen/mcptaskgen/generator/analyzer"
)

// multichecker does the work of unitchecker when go vet calls the program.
func main() { multichecker.Main(analyzer.Analyzers()...) }
