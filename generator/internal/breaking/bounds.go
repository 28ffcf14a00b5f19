package breaking

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// end is one end of an interval. The value of an upper end is negated, so that both ends compare as lower ones.
type end struct {
	value *big.Rat // nil if the interval has no such end
	open  bool     // the value is not in the interval
}

// isWithin reports whether an interval that begins at e has nothing before o.
func (e end) isWithin(o end) bool {
	if o.value == nil || e.value == nil {
		return o.value == nil
	}
	order := e.value.Cmp(o.value)
	return order > 0 || order == 0 && (e.open || !o.open)
}

// firstInteger returns the end that has the same integers behind it, with the first of them as its value.
func (e end) firstInteger() end {
	if e.value == nil {
		return e
	}
	whole, rest := new(big.Int).DivMod(e.value.Num(), e.value.Denom(), new(big.Int))
	if rest.Sign() > 0 || e.open {
		whole.Add(whole, big.NewInt(1))
	}
	return end{value: new(big.Rat).SetInt(whole)}
}

// readEnd returns the end that a keyword sets.
func readEnd(n *jsontree.Node, keyword string) end {
	e := end{number(n.Get(keyword)), strings.HasPrefix(keyword, "exclusive")}
	if e.value != nil && (strings.HasPrefix(keyword, "max") || keyword == "exclusiveMaximum") {
		e.value.Neg(e.value)
	}
	return e
}

// number returns a bound, or nil if n is no number of a size that bounds have.
func number(n *jsontree.Node) *big.Rat {
	if n == nil {
		return nil
	}
	text, _ := n.Value.(json.Number)
	switch f, err := text.Float64(); {
	case err != nil || len(text) > 100 || math.Abs(f) > 1e100:
		return nil
	case f == 0: // or too small for an exact value
		return new(big.Rat)
	}
	value, _ := new(big.Rat).SetString(text.String())
	return value
}

// fitBounds compares the ends of an interval. The keywords of one end stand together. If there is only one, it counts
// something: characters, items or members.
func (c *comparison) fitBounds(a, b *jsontree.Node, path []string, ends ...[]string) (faults []fault) {
	for _, keywords := range ends {
		var have end
		isCount := len(keywords) == 1
		if isCount && strings.HasPrefix(keywords[0], "min") {
			have.value = new(big.Rat)
		}
		for _, keyword := range keywords {
			if e := readEnd(a, keyword); e.isWithin(have) {
				have = e
			}
		}
		if isCount || !slices.Contains(typesOf(a), "number") {
			have = have.firstInteger()
		}
		for _, keyword := range keywords {
			if !have.isWithin(readEnd(b, keyword)) {
				faults = append(faults, c.boundFault(path, keyword, a.Get(keyword), b.Get(keyword))...)
			}
		}
	}
	return faults
}

// fitNumbers compares the bounds of numbers.
func (c *comparison) fitNumbers(a, b *jsontree.Node, path []string) []fault {
	faults := c.fitBounds(a, b, path, []string{"minimum", "exclusiveMinimum"}, []string{"maximum", "exclusiveMaximum"})
	if now := b.Get("multipleOf"); now != nil && !isMultiple(a.Get("multipleOf"), now) {
		faults = append(faults, c.boundFault(path, "multipleOf", a.Get("multipleOf"), now)...)
	}
	return faults
}

// isMultiple reports whether each multiple of was is a multiple of now.
func isMultiple(was, now *jsontree.Node) bool {
	x, y := number(was), number(now)
	return was != nil && was.Compact() == now.Compact() || x != nil && y != nil && y.Sign() != 0 && x.Quo(x, y).IsInt()
}

// boundFault returns a fault about a bound. Readers of results do not rely on bounds.
func (c *comparison) boundFault(path []string, keyword string, was, now *jsontree.Node) []fault {
	switch {
	case c.reversed:
		return nil
	case was == nil:
		return []fault{{"bounds", path, fmt.Sprintf("has %s=%s now", keyword, now.Compact())}}
	}
	return []fault{{"bounds", path, fmt.Sprintf("had %s=%s and has %s now", keyword, was.Compact(), now.Compact())}}
}
