package breaking

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// readable are the keywords that models and people read, beside those that are compared.
var readable = []string{"title", "description", "default", "examples", "example", "deprecated"}

// compareTexts returns the members that both schemas have, and that have other texts now.
func compareTexts(old, now *jsontree.Node) (faults []fault) {
	was, is := readTexts(old), readTexts(now)
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if text, ok := is[key]; ok && text != was[key] {
			faults = append(faults, fault{path: strings.Split(key, "\x00")[1:]})
		}
	}
	return faults
}

// textReader collects the texts of a schema by the paths of its members. Each step of a path has a zero byte before it.
type textReader struct {
	root  *jsontree.Node
	open  map[*jsontree.Node]bool
	texts map[string]string
	steps int
}

func readTexts(schema *jsontree.Node) map[string]string {
	r := textReader{root: schema, open: map[*jsontree.Node]bool{}, texts: map[string]string{}}
	r.read(schema, "")
	return r.texts
}

func (r *textReader) read(n *jsontree.Node, path string) {
	if r.steps++; n == nil || r.open[n] || r.steps > maxSteps || len(r.open) > maxLevel {
		return
	}
	r.open[n] = true
	defer delete(r.open, n)
	r.texts[path] += ""
	for _, name := range readable {
		if text := n.Get(name); text != nil {
			r.texts[path] += name + text.Compact()
		}
	}
	if ref := n.Get("$ref"); ref != nil {
		r.read(resolve(r.root, ref), path)
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		if list := n.Get(name); list != nil {
			for _, item := range list.Items {
				r.read(item, path)
			}
		}
	}
	if properties := n.Get("properties"); properties != nil {
		for _, p := range properties.Members {
			r.read(p.Value, path+"\x00"+p.Name)
		}
	}
	r.read(n.Get("items"), path+"\x00[]")
	r.read(n.Get("additionalProperties"), path+"\x00*")
}
