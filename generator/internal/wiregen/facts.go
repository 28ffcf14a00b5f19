package main

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// facts are the constants that package mcptask shares among all released revisions. If two
// revisions describe the same constant, the newer description wins. What only one revision has is
// in the package of that revision.
type facts struct {
	statuses   []schema.Status
	codes      []schema.ErrorCode
	metaKeys   []schema.MetaKey
	extensions []schema.Extension
}

func collectFacts(surfaces []*schema.Surface) (facts, error) {
	var all facts
	for _, s := range surfaces {
		if !isReleased(s) {
			continue
		}
		for _, status := range s.Statuses {
			old := replaceOrAppend(&all.statuses, status, func(o schema.Status) bool { return o.Name == status.Name })
			if old != nil && old.Terminal != status.Terminal {
				return all, fmt.Errorf("the revisions do not agree whether the status %s is terminal", status.Name)
			}
		}
		for _, code := range s.ErrorCodes {
			old := replaceOrAppend(&all.codes, code, func(o schema.ErrorCode) bool { return o.Name == code.Name })
			if old != nil && old.Code != code.Code {
				return all, fmt.Errorf("the error code %s is %d in one revision and %d in another", code.Name, old.Code, code.Code)
			}
		}
		for _, key := range s.MetaKeys {
			old := replaceOrAppend(&all.metaKeys, key, func(o schema.MetaKey) bool { return o.Name == key.Name })
			if old != nil && old.Key != key.Key {
				return all, fmt.Errorf("the _meta key %s is %q in one revision and %q in another", key.Name, old.Key, key.Key)
			}
		}
		if extension := s.Extension; extension.Name != "" {
			old := replaceOrAppend(&all.extensions, extension, func(o schema.Extension) bool { return o.Name == extension.Name })
			if old != nil && old.Key != extension.Key {
				return all, fmt.Errorf("the extension %s is %q in one revision and %q in another", extension.Name, old.Key, extension.Key)
			}
		}
	}
	return all, nil
}

func isReleased(s *schema.Surface) bool { return s.Standing == schema.Released }

// replaceOrAppend replaces the element that same accepts and returns the old one. If there is none,
// it appends value.
func replaceOrAppend[T any](list *[]T, value T, same func(T) bool) *T {
	i := slices.IndexFunc(*list, same)
	if i < 0 {
		*list = append(*list, value)
		return nil
	}
	old := (*list)[i]
	(*list)[i] = value
	return &old
}

// renderFacts renders the constants of package mcptask.
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
		name, value := "Revision"+goName(s.Revision), jen.Lit(s.Revision)
		if isReleased(s) {
			revisions = append(revisions, constantLines(name, "is MCP revision "+s.Revision+".", nil, value)...)
		} else {
			others = append(others, constantLines(name, "is off unless you name it. "+s.About, nil, value)...)
		}
	}
	emitGroup(f, "Revisions of MCP, as sent on the wire.", revisions)
	emitGroup(f, "Revisions that were not released. Their names belong to this project and are never sent.", others)

	var names []jen.Code
	for _, extension := range all.extensions {
		names = append(names, constantLines("Extension"+extension.Name, extension.Doc, nil, jen.Lit(extension.Key))...)
	}
	for _, key := range all.metaKeys {
		names = append(names, constantLines("Meta"+key.Name, key.Doc, nil, jen.Lit(key.Key))...)
	}
	emitGroup(f, "Keys of the protocol in capabilities (Extension) and in _meta (Meta).", names)
	var capabilities []jen.Code
	byRevision := jen.Dict{}
	for _, s := range surfaces {
		byRevision[jen.Id("Revision"+goName(s.Revision))] = jen.Id("Declared" + goName(s.Revision))
		capabilities = append(capabilities, constantLines("Declared"+goName(s.Revision),
			"is the capability object that a server with tasks adds in "+s.Revision+".", nil, jen.Op("`"+string(s.ServerCapabilities)+"`"))...)
	}
	emitGroup(f, "Capabilities of a server with tasks, as JSON objects.", capabilities)
	addComment(f.Group, "Declared returns the capabilities that a server with tasks adds, by revision.")
	f.Func().Id("Declared").Params().Map(jen.String()).String().Block(
		jen.Return(jen.Map(jen.String()).String().Values(byRevision)))
	return renderFile(f)
}

// emitStatus writes the type Status with its constants and its method.
func emitStatus(f *jen.File, statuses []schema.Status) {
	addComment(f.Group, "Status is the state of a task, as its requestor sees it.")
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
	emitGroup(f, "Statuses in the order of a task's life.", lines)
	addComment(f.Group, "Terminal reports whether the status is final.")
	f.Func().Params(jen.Id("s").Id("Status")).Id("Terminal").Params().Bool().Block(
		jen.Switch(jen.Id("s")).Block(jen.Case(terminal...).Block(jen.Return(jen.True()))),
		jen.Return(jen.False()),
	)
	f.Line()
}
