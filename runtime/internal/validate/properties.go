package validate

import (
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// listProperties returns the paths of the first properties that the recorded faults are about, each once. Names that are
// not declared are data, as those of a map are.
func (c *checker) listProperties(declared map[string]bool) []string {
	var list []string
	add := func(path string) {
		if path = text.Shorten(path, 256); path != "" && len(list) < MaxFaults && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	for _, f := range c.faults {
		path := c.propertyPath(f.node, declared)
		if f.missing == nil {
			add(path)
		}
		for _, name := range f.missing {
			add(joinPath(path, name))
		}
	}
	return list
}

// propertyPath returns the path of a value through declared properties. The name of a member has the path of its value.
func (c *checker) propertyPath(target int32, declared map[string]bool) string {
	path := ""
	for at := int32(0); at != target; {
		child := at + 1
		if c.nodes[at].kind == kindArray {
			for c.nodes[child].next <= target {
				child = c.nodes[child].next
			}
			path, at = path+"[]", child
			continue
		}
		for int(child+1) < len(c.nodes) && c.nodes[child+1].next <= target {
			child = c.nodes[child+1].next
		}
		step := "*"
		if name := c.string(child); declared[name] {
			step = name
		}
		path = joinPath(path, step)
		if child != target {
			child++
		}
		at = child
	}
	return path
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
