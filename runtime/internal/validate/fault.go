package validate

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// MaxFaults is how many faults of a value a check reports. The check ends at the next one.
const MaxFaults = 5

// fault is a node of the document that does not fit, with the reason.
type fault struct {
	node int32
	kind jsonschema.ErrorKind
}

// sentence is a fault that this package words itself.
type sentence string

func (sentence) KeywordPath() []string                     { return nil }
func (s sentence) LocalizedString(*message.Printer) string { return string(s) }

// brief reports whether only the verdict matters from here on.
func (c *checker) brief() bool {
	return c.silent > 0 || c.err != nil || len(c.faults) > MaxFaults
}

// add records a fault if it is one of the first. It returns false, the verdict.
func (c *checker) add(i int32, kind func() jsonschema.ErrorKind) bool {
	if c.silent == 0 && len(c.faults) <= MaxFaults { // one more than is reported shows that there are more
		c.faults = append(c.faults, fault{i, kind()})
	}
	return false
}

// describe joins the recorded faults.
func (c *checker) describe() string {
	slices.SortStableFunc(c.faults, func(a, b fault) int { return int(a.node - b.node) })
	c.more = c.more || len(c.faults) > MaxFaults
	printer := message.NewPrinter(language.English)
	var list []string
	for _, f := range c.faults[:min(len(c.faults), MaxFaults)] {
		line := f.kind.LocalizedString(printer)
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
