// Mcptaskvet finds mistakes in packages that declare and implement tools: go vet -vettool=$(which
// mcptaskvet) ./... runs it, and so does mcptaskvet ./... by itself. See mcptaskvet help.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/mcptaskgen/mcptaskgen/generator/analyzer"
)

// Where go vet is the caller, multichecker does what unitchecker would.
func main() { multichecker.Main(analyzer.Analyzers()...) }
