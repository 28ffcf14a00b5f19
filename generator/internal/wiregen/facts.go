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

func collectFacts(surfaces []*schema.Surface) (all facts, err error) {
	for _, s := range surfaces {
		if !isReleased(s) {
			continue
		}
		all.statuses, err = merge(all.statuses, s.Statuses, err, func(s schema.Status) (string, any) { return "the status " + s.Name, s.Terminal })
		all.codes, err = merge(all.codes, s.ErrorCodes, err, func(c schema.ErrorCode) (string, any) { return "the error code " + c.Name, c.Code })
		all.metaKeys, err = merge(all.metaKeys, s.MetaKeys, err, func(k schema.MetaKey) (string, any) { return "the _meta key " + k.Name, k.Key })
		if s.Extension.Name != "" {
			all.extensions, err = merge(all.extensions, []schema.Extension{s.Extension}, err, func(e schema.Extension) (string, any) { return "the extension " + e.Name, e.Key })
		}
	}
	return all, err
}

func isReleased(s *schema.Surface) bool { return s.Standing == schema.Released }

// merge replaces or adds the values of a revision. identify returns what a value is called and what all
// revisions must agree on. The first error is kept.
func merge[T any](all, values []T, err error, identify func(T) (name string, fixed any)) ([]T, error) {
	for _, value := range values {
		name, fixed := identify(value)
		i := slices.IndexFunc(all, func(o T) bool { other, _ := identify(o); return other == name })
		if i < 0 {
			all = append(all, value)
			continue
		}
		if _, old := identify(all[i]); old != fixed && err == nil {
			err = fmt.Errorf("%s is %v in one revision and %v in another", name, old, fixed)
		}
		all[i] = value
	}
	return all, err
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
