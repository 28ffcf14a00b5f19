package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// MaxFaults is how many faults of a value a check reports. The check ends at the next one.
const MaxFaults = 5

// fault is a node of the document that does not fit, with the reason.
type fault struct {
	node int32
	text string
	// wanted has the kinds or the values that the node should be one of. The text ends before them.
	wanted []string
	// otherKind says that none of the wanted values has the node's kind.
	otherKind bool
	// missing has the properties that the node lacks.
	missing []string
}

// brief reports whether only the verdict matters from here on.
func (c *checker) brief() bool {
	return c.silent > 0 || c.err != nil || len(c.faults) > MaxFaults
}

// add records a fault if it is one of the first. It returns false, the verdict.
func (c *checker) add(i int32, describe func() string) bool {
	if c.silent == 0 && len(c.faults) <= MaxFaults { // one more than is reported shows that there are more
		text := describe()
		if c.naming {
			text = "its name: " + text
		}
		c.faults = append(c.faults, fault{node: i, text: text})
	}
	return false
}

// addWanted records that a value is not one of those that are wanted.
func (c *checker) addWanted(i int32, got string, otherKind bool, wanted func() []string) bool {
	recorded := len(c.faults)
	c.add(i, func() string { return "got " + got + ", want " })
	for ; recorded < len(c.faults); recorded++ {
		c.faults[recorded].wanted, c.faults[recorded].otherKind = wanted(), otherKind
	}
	return false
}

// addConstants records that a value is not one of a schema's constants.
func (c *checker) addConstants(i int32, set *constants, values ...any) bool {
	return c.addWanted(i, c.show(i), set.kinds&c.nodes[i].kind == 0, func() []string {
		wanted := make([]string, len(values))
		for at, value := range values {
			wanted[at] = quote(value)
		}
		return wanted
	})
}

// addMissing records that an object lacks properties.
func (c *checker) addMissing(i int32, names func() []string, needed string) bool {
	var missing []string
	recorded := len(c.faults)
	c.add(i, func() string {
		missing = names()
		return "missing " + quoteProperties(missing) + needed
	})
	for ; recorded < len(c.faults); recorded++ {
		c.faults[recorded].missing = missing
	}
	return false
}

// mergeAlternatives makes one fault of those after a mark that say which values are wanted at a node,
// one for each alternative of its schema. It drops alternatives of another kind if one has the right kind.
func (c *checker) mergeAlternatives(from mark, i int32) {
	faults := c.faults[from.faults:]
	isWanted := func(f fault) bool { return f.node == i && f.wanted != nil }
	if slices.ContainsFunc(faults, func(f fault) bool { return !isWanted(f) || !f.otherKind }) {
		faults = slices.DeleteFunc(faults, func(f fault) bool { return isWanted(f) && f.otherKind })
	}
	if first := slices.IndexFunc(faults, isWanted); first >= 0 {
		for _, f := range faults[first+1:] {
			if isWanted(f) {
				faults[first].wanted = slices.Concat(faults[first].wanted, f.wanted)
			}
		}
		rest := slices.DeleteFunc(faults[first+1:], isWanted)
		faults = faults[:first+1+len(rest)]
	}
	c.faults = c.faults[:from.faults+len(faults)]
}

// describe joins the recorded faults.
func (c *checker) describe() string {
	slices.SortStableFunc(c.faults, func(a, b fault) int { return int(a.node - b.node) })
	c.more = c.more || len(c.faults) > MaxFaults
	var list []string
	for _, f := range c.faults[:min(len(c.faults), MaxFaults)] {
		line := f.text + joinChoices(f.wanted)
		if place := c.place(f.node); place != "" {
			line = place + ": " + line
		}
		if !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	if c.more {
		list = append(list, "and more")
	}
	return strings.Join(list, "; ")
}

// show returns a string or a number as it was sent, and the kind of any other value.
func (c *checker) show(i int32) string {
	switch n := c.nodes[i]; n.kind {
	case kindText:
		return `"` + shorten(c.literal(i)) + `"`
	case kindObject, kindArray:
		return n.kind.String()
	}
	return shorten(c.literal(i))
}

// quote returns a value of a schema as JSON for a message.
func quote(value any) string { return shorten(marshal(value)) }

// joinChoices joins choices to "a, b or c".
func joinChoices(choices []string) string {
	var distinct []string
	for _, choice := range choices {
		if !slices.Contains(distinct, choice) {
			distinct = append(distinct, choice)
		}
	}
	last := len(distinct) - 1
	if last < 1 {
		return strings.Join(distinct, "")
	}
	return strings.Join(distinct[:last], ", ") + " or " + distinct[last]
}

// count returns a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func describeAdditional(r *rule, names []string) string {
	verb := "is"
	if len(names) > 1 {
		verb = "are"
	}
	words := fmt.Sprintf("additional %s %s not allowed", quoteProperties(names), verb)
	if r.patterns == nil {
		return words
	}
	patterns := make([]string, len(r.patterns))
	for i, p := range r.patterns {
		patterns[i] = showPattern(p.match)
	}
	return words + ": names match the pattern " + joinChoices(patterns)
}

func showPattern(pattern jsonschema.Regexp) string { return text.Shorten(pattern.String(), 256) }

func quoteProperties(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	if len(names) == 1 {
		return "property " + quoted[0]
	}
	return "properties " + strings.Join(quoted, ", ")
}

// mark is a point in the list of faults. Rewinding to it drops the faults of alternatives that turn
// out not to matter.
type mark struct {
	faults int
	more   bool
}

// mark returns the current point.
func (c *checker) mark() mark { return mark{len(c.faults), c.more} }

// rewind drops the faults after a point.
func (c *checker) rewind(to mark) { c.faults, c.more = c.faults[:to.faults], to.more }

// isBehind reports whether faults were added after the mark.
func (m mark) isBehind(c *checker) bool { return len(c.faults) > m.faults || c.more && !m.more }
