package jsonschema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"math/big"
	"slices"
	"strings"
	"unicode"
)

// enum is a named type whose values are the constants of its package.
type enum struct {
	about  string   // the type's own comment
	values []any    // as JSON, in the order of the source
	lines  []string // what the values mean, a line each; none where no comment says
}

// choice is one constant of an enum.
type choice struct {
	name   string
	value  constant.Value
	pos    token.Position
	column int
	doc    string
}

// enumOf returns the enum that a type is, or nil. It is one where its package declares constants of
// exactly this type; the exported ones count, or all where none is. There are three exceptions.
// Types of the standard library are none, because constants come with Go releases, and what is
// generated must not change with them. Flags are none, because they combine (see [areFlags]). And
// what encoding/json writes by a method is text, whatever the constants are.
func (g *graph) enumOf(t types.Type) (*enum, error) {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.TypeArgs().Len() > 0 {
		return nil, nil
	}
	basic, ok := named.Underlying().(*types.Basic)
	if !ok || basic.Info()&(types.IsString|types.IsInteger) == 0 || hasMethod(t, "MarshalText", "UnmarshalText") {
		return nil, nil
	}
	if standard(g.docs.fset.Position(named.Obj().Pos()).Filename) {
		return nil, nil
	}
	key := qualified(named)
	if known, ok := g.enums[key]; ok {
		return known, nil
	}
	choices, err := g.choices(named)
	if err != nil {
		return nil, err
	}
	g.enums[key] = g.newEnum(named, choices)
	return g.enums[key], nil
}

// choices lists the constants of a type, each value once.
func (g *graph) choices(named *types.Named) ([]choice, error) {
	scope, err := g.scope(named.Obj().Pkg())
	if err != nil {
		return nil, &refusal{fmt.Sprintf("cannot read the constants of %s: %v", qualified(named), err), ""}
	}
	var found []choice
	exported := false
	for _, name := range scope.Names() {
		c, ok := scope.Lookup(name).(*types.Const)
		if !ok || !isOf(c.Type(), named) || c.Val().Kind() == constant.Unknown { // it does not compile
			continue
		}
		note := g.docs.find(c)
		found = append(found, choice{name, c.Val(), g.docs.fset.Position(c.Pos()), note.column, note.doc})
		exported = exported || c.Exported()
	}
	if exported {
		found = slices.DeleteFunc(found, func(c choice) bool { return !token.IsExported(c.name) })
	}
	slices.SortFunc(found, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.pos.Filename, b.pos.Filename), cmp.Compare(a.pos.Line, b.pos.Line),
			cmp.Compare(a.column, b.column), cmp.Compare(a.name, b.name))
	})
	var distinct []choice
	known := map[string]int{} // where a value stands in distinct
	for _, c := range found {
		value := c.value.ExactString()
		i, ok := known[value]
		if !ok {
			known[value] = len(distinct)
			distinct = append(distinct, c)
		} else if distinct[i].doc == "" {
			distinct[i].name, distinct[i].doc = c.name, c.doc // a second name that says more
		}
	}
	return distinct, nil
}

// isOf compares by name: the scope may have been loaded a second time.
func isOf(t types.Type, want *types.Named) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && qualified(named) == qualified(want)
}

func (g *graph) newEnum(named *types.Named, choices []choice) *enum {
	if len(choices) == 0 || areFlags(choices) {
		return nil
	}
	e := &enum{about: g.docs.find(named.Obj()).doc}
	documented := e.about != "" || slices.ContainsFunc(choices, func(c choice) bool { return c.doc != "" })
	for _, c := range choices {
		if c.value.Kind() == constant.String {
			text := strings.ToValidUTF8(constant.StringVal(c.value), "\ufffd") // as encoding/json writes it
			e.values = append(e.values, text)
			if c.doc != "" {
				// Comments begin with the name of the constant, which says nothing to a caller.
				e.lines = append(e.lines, shown(text)+": "+strings.TrimPrefix(c.doc, c.name+" "))
			}
			continue
		}
		number := constant.ToInt(c.value).ExactString()
		e.values = append(e.values, json.Number(number))
		if documented {
			e.lines = append(e.lines, number+": "+cmp.Or(c.doc, c.name)) // a number says nothing of itself
		}
	}
	return e
}

// shown writes a value for people, in quotes only where it would not be seen.
func shown(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
	}) {
		return quote(text)
	}
	return text
}

// areFlags tells whether integers are meant to be combined: three or more of them are powers of two,
// and the others are made of those, unless they just count from one.
func areFlags(choices []choice) bool {
	if choices[0].value.Kind() != constant.Int {
		return false
	}
	var powers, most big.Int
	count, nonzero := 0, 0
	var values []*big.Int
	for _, c := range choices {
		n, ok := new(big.Int).SetString(c.value.ExactString(), 10)
		if !ok || n.Sign() < 0 {
			return false
		}
		if n.Sign() > 0 {
			nonzero++
			values = append(values, n)
		}
		if n.Sign() > 0 && n.TrailingZeroBits() == uint(n.BitLen()-1) {
			powers.Or(&powers, n)
			count++
		}
		if n.Cmp(&most) > 0 {
			most.Set(n)
		}
	}
	for _, n := range values {
		if new(big.Int).AndNot(n, &powers).Sign() != 0 {
			return false
		}
	}
	return count >= 3 && most.Cmp(big.NewInt(int64(nonzero))) != 0
}

// enumerate writes an enum into a schema that its type has, unless a tag has named the choices.
func (g *graph) enumerate(t types.Type, node *object) {
	e, err := g.enumOf(t)
	if err != nil {
		g.refuse(g.at, "", err)
		return
	}
	if e == nil || node.has("enum") {
		return
	}
	node.set("enum", slices.Clone(e.values))
	if text := e.describe(e.about); text != "" && !node.has("description") {
		node.set("description", text)
	}
}

// describe appends what the values mean to a text.
func (e *enum) describe(text string) string {
	return joinLines(append([]string{text}, e.lines...)...)
}

// joinLines joins the lines that are not empty.
func joinLines(lines ...string) string {
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// quoteChoices writes an enum as the ",string" option has its values written.
func quoteChoices(property *object) {
	choices, _ := property.get("enum").([]any)
	for i, value := range choices {
		choices[i] = oneLine(value)
	}
}

// quoteNumbers writes an enum of integers as the keys of an object.
func quoteNumbers(keys *object) {
	choices, _ := keys.get("enum").([]any)
	for i, value := range choices {
		if number, ok := value.(json.Number); ok {
			choices[i] = number.String()
		}
	}
}

// checkDefault refuses a default that is none of the choices.
func checkDefault(property *object) error {
	values, ok := property.get("default").([]any)
	if items, isList := property.child("items"); ok && isList {
		return isChoice(items, values)
	}
	if property.has("default") {
		return isChoice(property, []any{property.get("default")})
	}
	return nil
}

func isChoice(node *object, values []any) error {
	choices, ok := node.get("enum").([]any)
	if !ok {
		return nil
	}
	for _, value := range values {
		if !slices.ContainsFunc(choices, func(c any) bool { return oneLine(c) == oneLine(value) }) {
			names := make([]string, len(choices))
			for i, c := range choices {
				names[i] = oneLine(c)
			}
			return &refusal{fmt.Sprintf("the default %s is none of the choices", oneLine(value)), "they are " + strings.Join(names, ", ")}
		}
	}
	return nil
}
