package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// facts are the constants that packages mcptask and spec share among all released revisions. If two
// revisions describe the same constant, the newer description wins. Constants of a single revision
// are in the package of that revision.
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

// merge replaces or adds the values of a revision. identify returns a value's name, and the part that must be the same
// in all revisions. The first error is kept.
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

// isJSONRPC reports whether an error code is of JSON-RPC itself.
func isJSONRPC(code int) bool { return code >= -32700 && code <= -32600 }

// renderFacts renders the constants of package mcptask: those that a handler or a caller may need.
func renderFacts(all facts, surfaces []*schema.Surface) ([]byte, error) {
	var f file
	f.writeStatus(all.statuses)

	var codes, revisions, others []constant
	for _, code := range all.codes {
		if isJSONRPC(code.Code) {
			codes = append(codes, constant{"Code" + code.Name, code.Doc, strconv.Itoa(code.Code)})
		}
	}
	var byRevision []string
	for _, s := range surfaces {
		id := goName(s.Revision)
		byRevision = append(byRevision, fmt.Sprintf("Revision%s: `%s`,\n", id, s.ServerCapabilities))
		if isReleased(s) {
			revisions = append(revisions, constant{"Revision" + id, "is MCP revision " + s.Revision + ".", strconv.Quote(s.Revision)})
		} else {
			others = append(others, constant{"Revision" + id, "is off unless you name it. " + s.About, strconv.Quote(s.Revision)})
		}
	}
	slices.Sort(byRevision)
	f.constants("JSON-RPC error codes.", "", codes)
	f.constants("Revisions of MCP, as sent on the wire.", "", revisions)
	f.constants("Revisions that were not released. Their names belong to this project and are never sent.", "", others)
	f.comment("Declared returns the capabilities that a server with tasks adds, as JSON objects, by revision.")
	fmt.Fprintf(&f, "func Declared() map[string]string {\nreturn map[string]string{\n%s}\n}\n", strings.Join(byRevision, ""))
	return f.render("", "mcptask")
}

// renderSpec renders the constants of package spec: those that only the packages of the runtime
// need.
func renderSpec(all facts) ([]byte, error) {
	var f file
	var codes, names []constant
	for _, code := range all.codes {
		if !isJSONRPC(code.Code) {
			codes = append(codes, constant{"Code" + code.Name, code.Doc, strconv.Itoa(code.Code)})
		}
	}
	for _, extension := range all.extensions {
		names = append(names, constant{"Extension" + extension.Name, extension.Doc, strconv.Quote(extension.Key)})
	}
	for _, key := range all.metaKeys {
		names = append(names, constant{"Meta" + key.Name, key.Doc, strconv.Quote(key.Key)})
	}
	f.constants("Error codes of MCP.", "", codes)
	f.constants("Keys of the protocol in capabilities (Extension) and in _meta (Meta).", "", names)
	return f.render("", "spec")
}

// writeStatus writes the type Status with its constants and its method.
func (f *file) writeStatus(statuses []schema.Status) {
	f.WriteString("// Status is the state of a task, as its requestor sees it.\ntype Status string\n\n")
	var lines []constant
	var terminal []string
	for _, status := range statuses {
		name := "Status" + goName(status.Name)
		lines = append(lines, constant{name, status.Doc, strconv.Quote(status.Name)})
		if status.Terminal {
			terminal = append(terminal, name)
		}
	}
	f.constants("Statuses in the order of a task's life.", "Status", lines)
	fmt.Fprintf(f, "// Terminal reports whether the status is final.\nfunc (s Status) Terminal() bool {\nswitch s {\ncase %s:\nreturn true\n}\nreturn false\n}\n\n", strings.Join(terminal, ", "))
}
