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

// enum is a named type whose values are constants of its package.
type enum struct {
	about  string   // the type's own comment
	values []any    // JSON values in source order
	lines  []string // the meaning of each value; empty if the constants have no comments
}

// choice is a constant of an enum.
type choice struct {
	name   string
	value  constant.Value
	pos    token.Position
	column int
	doc    string
}

// enumOf returns the enum of a type, or nil. A type is an enum if its package declares constants of
// exactly this type. Only exported constants count, unless none is exported.
//
// There are three exceptions. Types of the standard library are not enums, because Go releases add
// constants and generated code must not change with them. Flags are not enums, because they combine
// (see [areFlags]). A type that encoding/json encodes by a method is text.
func (g *graph) enumOf(t types.Type) (*enum, error) {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.TypeArgs().Len() > 0 {
		return nil, nil
	}
	basic, ok := named.Underlying().(*types.Basic)
	if !ok || basic.Info()&(types.IsString|types.IsInteger) == 0 || hasMethod(t, "MarshalText", "UnmarshalText") {
		return nil, nil
	}
	if isStandardLibrary(g.docs.fset.Position(named.Obj().Pos()).Filename) {
		return nil, nil
	}
	key := qualifiedName(named)
	if known, ok := g.enums[key]; ok {
		return known, nil
	}
	choices, err := g.findChoices(named)
	if err != nil {
		return nil, err
	}
	g.enums[key] = g.newEnum(named, choices)
	return g.enums[key], nil
}

// findChoices lists the constants of a type, with each value once.
func (g *graph) findChoices(named *types.Named) ([]choice, error) {
	scope, err := g.scope(named.Obj().Pkg())
	if err != nil {
		return nil, &refusal{fmt.Sprintf("cannot read the constants of %s: %v", qualifiedName(named), err), ""}
	}
	var found []choice
	exported := false
	for _, name := range scope.Names() {
		c, ok := scope.Lookup(name).(*types.Const)
		if !ok || !isNamedType(c.Type(), named) || c.Val().Kind() == constant.Unknown { // the constant does not compile
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
	known := map[string]int{} // the index of each value in distinct
	for _, c := range found {
		value := c.value.ExactString()
		i, ok := known[value]
		if !ok {
			known[value] = len(distinct)
			distinct = append(distinct, c)
		} else if distinct[i].doc == "" {
			distinct[i].name, distinct[i].doc = c.name, c.doc // another name with a comment
		}
	}
	return distinct, nil
}

// isNamedType compares types by name, because the scope may have been loaded twice.
func isNamedType(t types.Type, want *types.Named) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && qualifiedName(named) == qualifiedName(want)
}

func (g *graph) newEnum(named *types.Named, choices []choice) *enum {
	if len(choices) == 0 || areFlags(choices) {
		return nil
	}
	e := &enum{about: g.docs.find(named.Obj()).doc}
	documented := e.about != "" || slices.ContainsFunc(choices, func(c choice) bool { return c.doc != "" })
	for _, c := range choices {
		if c.value.Kind() == constant.String {
			text := strings.ToValidUTF8(constant.StringVal(c.value), "\ufffd") // as encoding/json encodes it
			e.values = append(e.values, text)
			if c.doc != "" {
				// A comment starts with the name of the constant, which callers do not know.
				e.lines = append(e.lines, displayValue(text)+": "+strings.TrimPrefix(c.doc, c.name+" "))
			}
			continue
		}
		number := constant.ToInt(c.value).ExactString()
		e.values = append(e.values, json.Number(number))
		if documented {
			e.lines = append(e.lines, number+": "+cmp.Or(c.doc, c.name)) // a number needs an explanation
		}
	}
	return e
}

// displayValue formats a value for people. It adds quotes only if the value would be hard to see.
func displayValue(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
	}) {
		return quoteJSON(text)
	}
	return text
}

// areFlags reports whether integers are meant to be combined. They are if at least three are powers
// of two, the others are combinations of these, and the values do not simply count from one.
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

// addEnum adds a type's enum to its schema, unless a tag sets other choices.
func (g *graph) addEnum(t types.Type, node *object) {
	e, err := g.enumOf(t)
	if err != nil {
		g.reportProblem(g.at, "", err)
		return
	}
	if e == nil || node.has("enum") {
		return
	}
	node.set("enum", slices.Clone(e.values))
	if text := e.appendMeanings(e.about); text != "" && !node.has("description") {
		node.set("description", text)
	}
}

// appendMeanings appends the meanings of the values to a text.
func (e *enum) appendMeanings(text string) string {
	return joinLines(append([]string{text}, e.lines...)...)
}

// joinLines joins the nonempty lines.
func joinLines(lines ...string) string {
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// quoteChoices converts an enum for a field with the ",string" option.
func quoteChoices(property *object) {
	choices, _ := property.get("enum").([]any)
	for i, value := range choices {
		choices[i] = compactText(value)
	}
}

// quoteNumbers converts an enum of integers to object keys.
func quoteNumbers(keys *object) {
	choices, _ := keys.get("enum").([]any)
	for i, value := range choices {
		if number, ok := value.(json.Number); ok {
			choices[i] = number.String()
		}
	}
}

// checkDefault refuses a default that is not one of the choices.
func checkDefault(property *object) error {
	values, ok := property.get("default").([]any)
	if items, isList := property.child("items"); ok && isList {
		return checkChoices(items, values)
	}
	if property.has("default") {
		return checkChoices(property, []any{property.get("default")})
	}
	return nil
}

func checkChoices(node *object, values []any) error {
	choices, ok := node.get("enum").([]any)
	if !ok {
		return nil
	}
	for _, value := range values {
		if !slices.ContainsFunc(choices, func(c any) bool { return compactText(c) == compactText(value) }) {
			names := make([]string, len(choices))
			for i, c := range choices {
				names[i] = compactText(c)
			}
			return &refusal{fmt.Sprintf("the default %s is not one of the choices", compactText(value)), "the choices are " + strings.Join(names, ", ")}
		}
	}
	return nil
}
