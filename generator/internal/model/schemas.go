package model

import (
	"go/types"
	"slices"
	"strconv"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// Suffixes of the constants with schemas.
const (
	argumentsSuffix = "Arguments"
	resultSuffix    = "Result"
	answerSuffix    = "Answer"
	dataSuffix      = "Data"
)

// schemaUse is a place that needs the constant of a schema.
type schemaUse struct {
	key    string // the suffix and the text
	byType string // the constant's name after the type; empty if it has none
	byTool string // the constant's name after the tool
	name   *string
}

// NameSchemas names the constants with the schemas. Each schema has one. It is named after its type and its use, such
// as runReportResult, so that the names do not depend on the tools and their order. It is named after the tool instead
// if the schema is hand-written, if the type has no name, or if the name is taken or would stand for two schemas.
func (p *Package) NameSchemas(taken func(name string) bool) {
	uses := p.schemaUses()
	keys := map[string][]string{}
	for _, u := range uses {
		if !slices.Contains(keys[u.byType], u.key) {
			keys[u.byType] = append(keys[u.byType], u.key)
		}
	}
	given := map[string]bool{}
	for _, u := range uses {
		if u.byType != "" && len(keys[u.byType]) == 1 && !taken(u.byType) {
			*u.name, given[u.byType] = u.byType, true
		}
	}
	byTool := map[string]string{} // the names of the others by their keys
	for _, u := range uses {
		if *u.name != "" {
			continue
		}
		if byTool[u.key] == "" {
			byTool[u.key] = u.nameByTool(given, taken)
		}
		*u.name = byTool[u.key]
	}
}

// schemaUses lists the schemas of the package in the order of declaration.
func (p *Package) schemaUses() []schemaUse {
	var uses []schemaUse
	add := func(name *string, text, tool, suffix string, t types.Type) {
		u := schemaUse{key: suffix + text, byTool: tool + suffix, name: name}
		if named := typeWords(t, p.Path); named != "" {
			u.byType = lowerFirstWord(named) + suffix
		}
		if text != "" {
			uses = append(uses, u)
		}
	}
	derived := func(t types.Type, written bool) types.Type {
		if written {
			return nil
		}
		return t
	}
	for _, service := range p.Services {
		for _, tool := range service.Tools {
			name := lowerFirstWord(service.Name) + tool.Method
			add(&tool.InputConst, tool.InputSchema, name, argumentsSuffix, derived(tool.In, tool.InputWritten))
			add(&tool.OutputConst, tool.OutputSchema, name, resultSuffix, derived(tool.Out, tool.OutputWritten))
		}
	}
	for _, input := range p.Inputs {
		add(&input.SchemaConst, input.Schema, lowerFirstWord(input.Name), answerSuffix, input.Type)
	}
	for _, e := range p.Errors {
		add(&e.SchemaConst, e.Schema, lowerFirstWord(e.Name), dataSuffix, e.Type)
	}
	return uses
}

// nameByTool returns a name after the tool that is free.
func (u schemaUse) nameByTool(given map[string]bool, taken func(string) bool) string {
	name := u.byTool
	for i := 2; taken(name) || given[name]; i++ {
		name = u.byTool + strconv.Itoa(i)
	}
	given[name] = true
	return name
}

// typeWords returns the name of a type as a part of an identifier: Report, otherReport for a type of
// package other, PageOfReport for Page[Report]. It is empty if the type has none.
func typeWords(t types.Type, path string) string {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return words.UpperFirst(t.Name())
	case *types.Pointer:
		return typeWords(t.Elem(), path)
	case *types.Slice:
		if elem := typeWords(t.Elem(), path); elem != "" {
			return elem + "List"
		}
	case *types.Named:
		name := t.Obj().Name()
		if pkg := t.Obj().Pkg(); pkg != nil && pkg.Path() != path {
			name = pkg.Name() + words.UpperFirst(name)
		}
		link := "Of"
		for arg := range t.TypeArgs().Types() {
			of := typeWords(arg, path)
			if of == "" {
				return ""
			}
			name, link = name+link+words.UpperFirst(of), "And"
		}
		return name
	}
	return ""
}
