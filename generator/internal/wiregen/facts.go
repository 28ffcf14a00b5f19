package main

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// facts is what package mcptask has in common for all released revisions. Where
// two revisions describe the same thing, the newer one's words count. What the
// others have beside it stands in their own package.
type facts struct {
	statuses   []schema.Status
	codes      []schema.ErrorCode
	metaKeys   []schema.MetaKey
	extensions []schema.Extension
}

func collect(surfaces []*schema.Surface) (facts, error) {
	var all facts
	for _, s := range surfaces {
		if !released(s) {
			continue
		}
		for _, status := range s.Statuses {
			old := put(&all.statuses, status, func(o schema.Status) bool { return o.Name == status.Name })
			if old != nil && old.Terminal != status.Terminal {
				return all, fmt.Errorf("the revisions do not agree whether the status %s is terminal", status.Name)
			}
		}
		for _, code := range s.ErrorCodes {
			old := put(&all.codes, code, func(o schema.ErrorCode) bool { return o.Name == code.Name })
			if old != nil && old.Code != code.Code {
				return all, fmt.Errorf("the error code %s is %d in one revision and %d in another", code.Name, old.Code, code.Code)
			}
		}
		for _, key := range s.MetaKeys {
			old := put(&all.metaKeys, key, func(o schema.MetaKey) bool { return o.Name == key.Name })
			if old != nil && old.Key != key.Key {
				return all, fmt.Errorf("the _meta key %s is %q in one revision and %q in another", key.Name, old.Key, key.Key)
			}
		}
		if extension := s.Extension; extension.Name != "" {
			old := put(&all.extensions, extension, func(o schema.Extension) bool { return o.Name == extension.Name })
			if old != nil && old.Key != extension.Key {
				return all, fmt.Errorf("the extension %s is %q in one revision and %q in another", extension.Name, old.Key, extension.Key)
			}
		}
	}
	return all, nil
}

func released(s *schema.Surface) bool { return s.Standing == schema.Released }

// put replaces the element that same accepts and returns the old one, or
// appends value.
func put[T any](list *[]T, value T, same func(T) bool) *T {
	i := slices.IndexFunc(*list, same)
	if i < 0 {
		*list = append(*list, value)
		return nil
	}
	old := (*list)[i]
	(*list)[i] = value
	return &old
}

// renderFacts writes the constants of package mcptask.
func renderFacts(all facts, surfaces []*schema.Surface) ([]byte, error) {
	f := newFile(runtimePath, "mcptask")
	emitStatus(f, all.statuses)

	var codes []jen.Code
	for _, code := range all.codes {
		codes = append(codes, constantLines("Code"+code.Name, code.Doc, nil, jen.Lit(code.Code))...)
	}
	emitGroup(f, "JSON-RPC error codes.", codes)

	var revisions, others []jen.Code
	for _, s := range surfaces {
		name, value := "Revision"+revisionName(s.Revision), jen.Lit(s.Revision)
		if released(s) {
			revisions = append(revisions, constantLines(name, "is MCP revision "+s.Revision+".", nil, value)...)
		} else {
			others = append(others, constantLines(name, "is off unless it is named. "+s.About, nil, value)...)
		}
	}
	emitGroup(f, "The revisions of MCP, as they go over the wire.", revisions)
	emitGroup(f, "What is no released revision. These names are this project's and never go over the wire.", others)

	var names []jen.Code
	for _, extension := range all.extensions {
		names = append(names, constantLines("Extension"+extension.Name, extension.Doc, nil, jen.Lit(extension.Key))...)
	}
	for _, key := range all.metaKeys {
		names = append(names, constantLines("Meta"+key.Name, key.Doc, nil, jen.Lit(key.Key))...)
	}
	emitGroup(f, "The protocol's keys in capabilities (Extension) and in _meta (Meta).", names)
	var capabilities []jen.Code
	byRevision := jen.Dict{}
	for _, s := range surfaces {
		byRevision[jen.Id("Revision"+revisionName(s.Revision))] = jen.Id("Declared" + revisionName(s.Revision))
		capabilities = append(capabilities, constantLines("Declared"+revisionName(s.Revision),
			"is what a server of tasks adds to its capabilities in "+s.Revision+".", nil, jen.Op("`"+string(s.ServerCapabilities)+"`"))...)
	}
	emitGroup(f, "The capabilities of a server of tasks, as JSON objects.", capabilities)
	comment(f.Group, "Declared is what a server of tasks adds to its capabilities in each revision that this package knows.", 0)
	f.Func().Id("Declared").Params().Map(jen.String()).String().Block(
		jen.Return(jen.Map(jen.String()).String().Values(byRevision)))
	return toBytes(f)
}

// emitStatus writes the type Status, its constants and its method.
func emitStatus(f *jen.File, statuses []schema.Status) {
	comment(f.Group, "Status is where a task stands, as its requestor sees it.", 0)
	f.Type().Id("Status").String()
	f.Line()
	var lines, terminal []jen.Code
	for _, status := range statuses {
		name := "Status" + goName(status.Name)
		lines = append(lines, constantLines(name, status.Doc, jen.Id("Status"), jen.Lit(status.Name))...)
		if status.Terminal {
			terminal = append(terminal, jen.Id(name))
		}
	}
	emitGroup(f, "The statuses, in the order of a task's life.", lines)
	comment(f.Group, "Terminal reports whether the status is final.", 0)
	f.Func().Params(jen.Id("s").Id("Status")).Id("Terminal").Params().Bool().Block(
		jen.Switch(jen.Id("s")).Block(jen.Case(terminal...).Block(jen.Return(jen.True()))),
		jen.Return(jen.False()),
	)
	f.Line()
}
