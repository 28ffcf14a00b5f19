package jsonschema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/description"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// enum is a named type whose values are constants of its package.
type enum struct {
	about  string   // the type's own comment
	values []any    // JSON values in source order
	lines  []string // the meaning of each value; empty if the constants have no comments

	names description.Names // what stands for each constant in a description

	consts []model.Const // with //mcptask:enum strings, the constants with their names in JSON
	zero   any           // the name of the constant 0 among them, or nil
}

// choice is a constant of an enum.
type choice struct {
	name   string
	value  constant.Value
	pos    token.Position
	column int
	doc    string
}

// findEnum returns the enum of a type, or nil. A directive //mcptask:enum or //mcptask:open above
// it decides. Without one, a string type with two or more constants of exactly this type in its
// package is an enum. So is an integer type, unless its constants are flags, which combine (see
// [areFlags]). An enum of integers is a guess, which prints a note. So is the decision that a type
// with a single constant is not an enum. Only exported constants count, unless none is exported.
//
// Types of the standard library are not enums, because Go releases add constants and generated code
// must not change with them. A type that encoding/json encodes by a method is text.
func (g *graph) findEnum(t types.Type) (*enum, error) {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.TypeArgs().Len() > 0 || isStandardLibrary(g.docs.fset.Position(named.Obj().Pos()).Filename) {
		return nil, nil
	}
	about := g.docs.find(named.Obj())
	declared := about.directives[enumDirective] != nil
	if about.directives[openDirective] != nil || !declared && whyNoEnum(named) != "" {
		return nil, nil
	}
	key := qualifiedName(named)
	if known, ok := g.enums[key]; ok {
		g.noteGuess(named, g.guesses[key])
		return known, nil
	}
	if declared {
		if err := g.checkEnum(named, enumDirective); err != nil {
			return nil, g.ownError(named, err)
		}
	}
	choices, err := g.findChoices(named)
	if err != nil {
		return nil, err
	}
	isEnum, why := guessEnum(g.typeName(named), choices)
	if !declared {
		g.guesses[key] = guess{why, isEnum}
		g.noteGuess(named, g.guesses[key])
	}
	g.enums[key] = nil
	if isEnum || declared {
		g.enums[key] = g.newEnum(named, choices)
	}
	return g.enums[key], nil
}

// checkEnum refuses //mcptask:enum or //mcptask:open above a type for which it means nothing.
func (g *graph) checkEnum(named *types.Named, kind string) error {
	if note := g.docs.find(named.Obj()); kind == enumDirective && note.asksForNames() {
		return g.checkNames(named, note)
	}
	why, hint := whyNoEnum(named), "remove it, or name the choices with //mcptask:schema, such as type=string enum=a enum=b"
	if why == "" {
		choices, err := g.findChoices(named)
		switch both := g.docs.find(named.Obj()).directives[enumDirective] != nil; {
		case err != nil:
			return err
		case len(choices) == 0:
			why, hint = "its package declares no constants of this type", "declare them, or remove //mcptask:"+kind
		case kind == openDirective && both:
			why, hint = "the type also has mcptask:enum", "remove one of them"
		}
	}
	if why == "" {
		return nil
	}
	return &refusal{fmt.Sprintf("mcptask:%s of %s has no effect, because %s", kind, named.Obj().Name(), why), hint}
}

// whyNoEnum returns the reason why a type with constants cannot be an enum, or "".
func whyNoEnum(named *types.Named) string {
	basic, ok := named.Underlying().(*types.Basic)
	if !ok || basic.Info()&(types.IsString|types.IsInteger) == 0 {
		return "it is not a string or integer type"
	}
	if _, method := findMethod(named, "MarshalText", "UnmarshalText"); method != "" {
		return "it has a method " + method
	}
	return ""
}

// guessEnum reports whether constants look like all the values of their type. guess describes the
// guess, if it is not certain.
func guessEnum(name string, choices []choice) (isEnum bool, guess string) {
	switch {
	case len(choices) == 0:
		return false, ""
	case len(choices) == 1:
		return false, fmt.Sprintf("%s has one constant, %s, so it is not taken as an enum", name, choices[0].name)
	case choices[0].value.Kind() == constant.String:
		return true, ""
	case areFlags(choices):
		return false, fmt.Sprintf("the constants of %s look like flags, so it is not taken as an enum", name)
	}
	return true, fmt.Sprintf("%s is taken as an enum of its %d constants", name, len(choices))
}

// findChoices lists the constants of a type, with each value once. It compares types by name, because
// the scope may have been loaded twice. Of several constants with one value, it lists the first.
func (g *graph) findChoices(named *types.Named) ([]choice, error) {
	scope, err := g.scope(named.Obj().Pkg())
	if err != nil {
		return nil, &refusal{fmt.Sprintf("cannot read the constants of %s: %v", qualifiedName(named), err), ""}
	}
	var found []choice
	exported := false
	for _, name := range scope.Names() {
		c, ok := scope.Lookup(name).(*types.Const)
		if !ok || qualifiedName(c.Type()) != qualifiedName(named) || c.Val().Kind() == constant.Unknown { // the constant does not compile
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
			distinct[i].doc = c.doc // of another name
		}
	}
	return distinct, nil
}

func (g *graph) newEnum(named *types.Named, choices []choice) *enum {
	if g.writesNames(named) {
		return g.newNames(named, choices)
	}
	e := &enum{names: description.Names{}}
	for _, c := range choices {
		e.names[c.name] = displayConstant(c.value)
	}
	e.about = description.Enum(g.docs.find(named.Obj()).doc, e.names)
	documented := e.about != "" || slices.ContainsFunc(choices, func(c choice) bool { return c.doc != "" })
	for _, c := range choices {
		if c.value.Kind() == constant.String {
			text := strings.ToValidUTF8(constant.StringVal(c.value), "\ufffd") // as encoding/json encodes it
			e.values = append(e.values, text)
			if c.doc != "" {
				e.lines = append(e.lines, displayValue(text)+": "+description.Value(c.name, text, c.doc, e.names))
			}
			continue
		}
		number := constant.ToInt(c.value).ExactString()
		e.values = append(e.values, json.Number(number))
		if documented {
			// a number needs an explanation
			e.lines = append(e.lines, number+": "+cmp.Or(description.Value(c.name, number, c.doc, e.names), c.name))
		}
	}
	return e
}

// displayConstant formats the value of a constant for people.
func displayConstant(value constant.Value) string {
	if value.Kind() == constant.String {
		return displayValue(strings.ToValidUTF8(constant.StringVal(value), "\ufffd"))
	}
	return constant.ToInt(value).ExactString()
}

// displayValue formats a value for people. It adds quotes only if the value would be hard to see.
func displayValue(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
	}) {
		return words.QuoteJSON(text)
	}
	return text
}

// areFlags reports whether integers are meant to be combined. They are if at least three are powers
// of two, the others are combinations of these, and the values do not simply count from one.
func areFlags(choices []choice) bool {
	var values []uint64
	var powers, most uint64
	count := 0
	for _, c := range choices {
		n, ok := constant.Uint64Val(constant.ToInt(c.value))
		switch {
		case !ok:
			return false
		case n > 0:
			values = append(values, n)
			most = max(most, n)
		}
		if bits.OnesCount64(n) == 1 {
			powers |= n
			count++
		}
	}
	combines := !slices.ContainsFunc(values, func(n uint64) bool { return n&^powers != 0 })
	return combines && count >= 3 && most != uint64(len(values))
}

// addEnum adds a type's enum to its schema.
func (g *graph) addEnum(t types.Type, s *schema) error {
	e, err := g.findEnum(t)
	if e == nil {
		return err
	}
	s.Enum, s.Minimum, s.Maximum = slices.Clone(e.values), "", ""
	s.Description = e.appendMeanings(e.about)
	g.enumOf[s] = e
	if named := types.Unalias(t).(*types.Named); e.consts != nil && !g.docs.isOwn(named.Obj()) {
		g.imported[qualifiedName(named)] = named.Obj()
	}
	return nil
}

// appendMeanings appends the meanings of the values to a text.
func (e *enum) appendMeanings(text string) string {
	return joinLines(append([]string{text}, e.lines...)...)
}

// joinLines joins the nonempty lines.
func joinLines(lines ...string) string {
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// quoteChoices converts an enum for a field with the ",string" option, or for the keys of a map.
func quoteChoices(s *schema) {
	for i, value := range s.Enum {
		s.Enum[i] = toValue(value, nil).Spaced()
	}
}
