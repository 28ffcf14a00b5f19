package emit

import (
	"cmp"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// localNames are the parameters and variables of generated functions. The user's parameter names
// are not used, because one of them might equal the name of an import.
var localNames = []string{
	"answer", "c", "conn", "ctx", "err", "f", "impl", "in", "message", "opts", "step", "task", "token", "w", "zero",
}

// enumLocals are those of the methods of enums.
var enumLocals = []string{"text", "v"}

// chooseNames picks the names of local variables and imports, so that none shadows another or an
// identifier of the package.
func (w *writer) chooseNames() {
	taken := map[string]bool{}
	maps.Copy(taken, w.pkg.Taken)
	for _, id := range declaredNames(w.pkg) {
		taken[id] = true
	}
	for id := range w.protocol.Names() {
		taken[id] = true
	}
	names := localNames
	if len(w.pkg.Enums) > 0 {
		names = append(slices.Clone(names), enumLocals...)
	}
	for _, base := range names {
		w.locals[base] = freeName(base, "_", taken)
	}
	for i := 1; i < w.mostQuestions(); i++ {
		w.locals[answerName(i)] = freeName(answerName(i), "_", taken)
	}
	packages := map[string]string{"context": "context", "time": "time", runtimePath: "mcptask"}
	if len(w.pkg.Enums) > 0 {
		packages["fmt"] = "fmt"
	}
	for _, enum := range w.pkg.ImportedEnums {
		packages["encoding"] = "encoding"
		collectPackages(packages, enum.Type())
	}
	for _, service := range w.pkg.Services {
		for _, tool := range service.Tools {
			collectPackages(packages, tool.In)
			collectPackages(packages, tool.Out)
		}
	}
	for _, t := range w.declared {
		collectPackages(packages, t)
	}
	delete(packages, w.pkg.Path)
	// Imports of the generator come first, so that they keep their names. The others are sorted by
	// path.
	paths := slices.SortedFunc(maps.Keys(packages), func(a, b string) int {
		return cmp.Or(cmp.Compare(importRank(a), importRank(b)), cmp.Compare(a, b))
	})
	for _, path := range paths {
		alias := freeImport(packages[path], taken)
		w.imports[path] = alias
		if alias == packages[path] && path != runtimePath {
			w.file.ImportName(path, alias)
		} else {
			w.file.ImportAlias(path, alias)
		}
	}
}

func importRank(path string) int {
	if rank := slices.Index([]string{"context", "time", "fmt", "encoding", runtimePath}, path); rank >= 0 {
		return rank
	}
	return 5
}

func freeName(base, suffix string, taken map[string]bool) string {
	for taken[base] {
		base += suffix
	}
	taken[base] = true
	return base
}

func freeImport(base string, taken map[string]bool) string {
	alias := base
	for i := 2; taken[alias] || jen.IsReservedWord(alias); i++ {
		alias = base + strconv.Itoa(i)
	}
	taken[alias] = true
	return alias
}

// declaredNames returns the identifiers that the generated file declares.
func declaredNames(pkg *model.Package) []string {
	names := []string{"taskCapabilities"}
	for _, service := range pkg.Services {
		names = append(names, model.ServiceNames(service.Name)...)
		if len(service.Workflows()) > 0 {
			names = append(names, model.WorkflowsType(service.Name))
		}
		for _, tool := range service.Tools {
			names = append(names, tool.InputConst, tool.OutputConst, tool.EntryConst)
		}
	}
	for _, input := range pkg.Inputs {
		names = append(names, model.InputNames(input.Name, pkg.AsksInWorkflows())...)
		names = append(names, input.SchemaConst)
	}
	for _, e := range pkg.Errors {
		names = append(names, model.ErrorSpecFunc(e.Name), e.SchemaConst)
	}
	return names
}

// mostQuestions returns the largest number of questions that a tool asks.
func (w *writer) mostQuestions() int {
	most := 0
	for _, service := range w.pkg.Services {
		for _, tool := range service.Tools {
			most = max(most, len(tool.Questions))
		}
	}
	return most
}

func answerName(i int) string {
	if i == 0 {
		return "answer"
	}
	return "answer" + strconv.Itoa(i+1)
}

// collectPackages adds the packages that a type refers to.
func collectPackages(packages map[string]string, t types.Type) {
	if t == nil {
		return
	}
	// TypeString calls the function for each package it writes.
	types.TypeString(t, func(p *types.Package) string {
		if _, known := packages[p.Path()]; !known {
			packages[p.Path()] = p.Name()
		}
		return p.Name()
	})
}

func intLiteral(n int64) *jen.Statement { return jen.Op(strconv.FormatInt(n, 10)) }

func rawTag(tag string) string {
	if strings.ContainsAny(tag, "`\r\n") {
		return strconv.Quote(tag)
	}
	return "`" + tag + "`"
}
