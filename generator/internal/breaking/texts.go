package breaking

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// readable are the keywords that models and people read, beside those that are compared.
var readable = []string{"title", "description", "default", "examples", "example", "deprecated"}

// findTextFaults returns a fault with only a path for each member that both schemas have and whose texts have changed.
func findTextFaults(old, now *jsontree.Node) (faults []fault) {
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
	r.texts[path] += "" // so that a member without texts counts too
	for _, name := range readable {
		if text := n.Get(name); text != nil {
			r.texts[path] += name + text.Compact()
		}
	}
	if ref, ok := n.Get("$ref").Text(); ok {
		r.read(r.root.Follow(ref), path)
	}
	for _, item := range slices.Concat(n.ItemsOf("allOf"), n.ItemsOf("anyOf"), n.ItemsOf("oneOf")) {
		r.read(item, path)
	}
	for _, p := range n.MembersOf("properties") {
		r.read(p.Value, path+"\x00"+p.Name)
	}
	r.read(n.Get("items"), path+"\x00[]")
	r.read(n.Get("additionalProperties"), path+"\x00*")
}
