package jsontree

import (
	"encoding/json"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// Compact returns the value as JSON on one line without spaces.
func (n *Node) Compact() string { return layout{comma: ",", colon: ":"}.format(n) }

// Spaced returns the value as JSON on one line, with a space after each comma and colon.
func (n *Node) Spaced() string { return layout{comma: ", ", colon: ": "}.format(n) }

// Spread returns the value as JSON with a line for each of its members or items. spread reports whether a value inside
// is laid out like this too. It gets a member, or an item as a member without a name. All other values are on one line,
// as by Spaced. So if spread holds for a value, it must hold for each value that contains it. Values deeper than 32
// levels are on one line too.
func (n *Node) Spread(spread func(Member) bool) string {
	return layout{", ", ": ", func(m Member) bool { return m.Value == n || spread(m) }}.format(n)
}

// maxIndentation is how many spaces a line of a spread value begins with at most. Otherwise a text would grow with its depth
// times the number of its lines.
const maxIndentation = 64

// layout is the way in which values are written. Without spread, they are on one line.
type layout struct {
	comma, colon string
	spread       func(Member) bool
}

func (l layout) format(n *Node) string {
	var b strings.Builder
	l.write(&b, Member{Value: n}, "\n")
	return b.String()
}

// write writes the value of a member. newline is a line break with the indentation of the value.
func (l layout) write(b *strings.Builder, m Member, newline string) {
	n := m.Value
	if n.Kind != Object && n.Kind != Array {
		b.WriteString(n.scalar())
		return
	}
	brackets := map[Kind]string{Object: "{}", Array: "[]"}[n.Kind]
	first, comma, last := "", l.comma, ""
	if l.spread != nil && len(newline) <= maxIndentation && len(n.Members)+len(n.Items) > 0 && l.spread(m) {
		first, comma, last = newline+"  ", ","+newline+"  ", newline
		newline += "  "
	}
	b.WriteString(brackets[:1])
	separator := first
	for _, m := range n.Members {
		b.WriteString(separator + words.QuoteJSON(m.Name) + l.colon)
		l.write(b, m, newline)
		separator = comma
	}
	for _, item := range n.Items {
		b.WriteString(separator)
		l.write(b, Member{Value: item}, newline)
		separator = comma
	}
	b.WriteString(last + brackets[1:])
}

func (n *Node) scalar() string {
	switch v := n.Value.(type) {
	case string:
		return words.QuoteJSON(v)
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return "null"
}
