package jsonschema

import (
	"cmp"
	"fmt"
	"go/constant"
	"go/types"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/description"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// NamesArgument is the argument of //mcptask:enum above an integer type whose values are the names of
// its constants in JSON.
const NamesArgument = "strings"

// asksForNames reports whether a type has //mcptask:enum strings.
func (n note) asksForNames() bool {
	d := n.directives[enumDirective]
	return d != nil && len(d.Args) > 0 && d.Args[0].Key == NamesArgument
}

// writesNames reports whether the values of a type are the names of its constants in JSON, by methods
// that are generated. The directive decides, because the methods are not always there: the generated
// files of the packages that are being generated are not read.
func (d *Deriver) writesNames(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return false
	}
	return isInteger(named) && d.docs.find(named.Obj()).asksForNames()
}

func isInteger(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}

// Names returns the constants of a type of the package with their names in JSON. It returns nil unless
// the type has a valid //mcptask:enum strings, which [Deriver.CheckDeclared] checks.
func (d *Deriver) Names(obj types.Object) []model.Const {
	if obj == nil || !d.writesNames(obj.Type()) {
		return nil
	}
	e, err := d.newGraph(Argument, obj.Pos(), nil).findEnum(obj.Type())
	if e == nil || err != nil {
		return nil
	}
	return e.consts
}

// ImportedEnums returns the types of other packages of which the derived schemas have names, in the order of packages and
// names. It leaves out the types that the package cannot name.
func (d *Deriver) ImportedEnums() []*types.TypeName {
	var list []*types.TypeName
	for _, key := range slices.Sorted(maps.Keys(d.imported)) {
		if obj := d.imported[key]; obj.Exported() && mayImport(d.pkg.Path(), obj.Pkg().Path()) {
			list = append(list, obj)
		}
	}
	return list
}

// mayImport reports whether a package may import another one, which may be internal.
func mayImport(from, path string) bool {
	elements := strings.Split(path, "/")
	for i, element := range elements {
		root := strings.Join(elements[:i], "/")
		if element == "internal" && from != root && !strings.HasPrefix(from, root+"/") {
			return false
		}
	}
	return true
}

// newNames returns the enum of a type under //mcptask:enum strings.
func (g *graph) newNames(named *types.Named, choices []choice) *enum {
	e := &enum{names: description.Names{}}
	for _, c := range choices {
		e.names[c.name] = constantName(named.Obj().Name(), c.name)
	}
	e.about = description.Enum(g.docs.find(named.Obj()).doc, e.names)
	for _, c := range choices {
		name := e.names[c.name]
		e.values = append(e.values, name)
		e.consts = append(e.consts, model.Const{Name: c.name, Value: name})
		if c.doc != "" {
			e.lines = append(e.lines, name+": "+description.Value(c.name, name, c.doc, e.names))
		}
		if constant.Sign(c.value) == 0 {
			e.zero = name
		}
	}
	return e
}

// checkNames refuses //mcptask:enum strings above a type for which the methods cannot be generated.
func (g *graph) checkNames(named *types.Named, about note) error {
	name := named.Obj().Name()
	refuse := func(why, hint string) error {
		return &refusal{fmt.Sprintf("mcptask:enum strings of %s is not possible, because %s", name, why), hint}
	}
	switch own := writtenMethod(named); {
	case !isInteger(named):
		return refuse("it is not an integer type", "remove strings: the values of a string type are texts already")
	case named.TypeParams().Len() > 0:
		return refuse("it has type parameters", "declare an integer type without them")
	case about.directives[schemaDirective] != nil:
		return refuse("the type also has mcptask:schema", "remove one of them")
	case own != "" && g.docs.isOwn(named.Obj()):
		return refuse("it has a method "+own+" of its own", "remove the method, because the generated file has MarshalText and UnmarshalText; "+
			"or keep it, and name the choices with //mcptask:schema, such as type=string enum=a enum=b")
	}
	choices, err := g.findChoices(named)
	switch {
	case err != nil:
		return err
	case len(choices) == 0:
		return refuse("its package declares no constants of this type", "declare them, or remove //mcptask:enum")
	}
	known := map[string]string{} // constants by their names in JSON
	for _, c := range choices {
		text := constantName(name, c.name)
		if other, taken := known[text]; taken {
			return refuse(fmt.Sprintf("its constants %s and %s would both be %q", other, c.name, text), "rename one of them")
		}
		known[text] = c.name
	}
	return nil
}

// writtenMethod returns the name of a method that takes part in the JSON of a type, or "".
func writtenMethod(named *types.Named) string {
	for _, name := range encodingMethods {
		for i := range named.NumMethods() {
			if named.Method(i).Name() == name {
				return name
			}
		}
	}
	return ""
}

// constantName returns the name of a constant in JSON: without the name of its type, in snake case.
// PriorityHigh and HighPriority of Priority are high.
func constantName(typeName, name string) string {
	runes := []rune(name)
	size := len([]rune(typeName))
	short := name
	switch rest := len(runes) - size; {
	case rest <= 0:
	case strings.EqualFold(string(runes[:size]), typeName) && beginsWord(runes, size):
		short = string(runes[size:])
	case strings.EqualFold(string(runes[rest:]), typeName) && beginsWord(runes, rest):
		short = string(runes[:rest])
	}
	return words.SnakeCase(cmp.Or(strings.Trim(short, "_"), name))
}

// beginsWord reports whether a word of a name may begin at index i: at a capital, a digit or an underscore.
func beginsWord(runes []rune, i int) bool {
	return !unicode.IsLower(runes[i]) && (!unicode.IsUpper(runes[i]) || words.StartsWord(runes, i))
}

// zeroName returns the name that the zero value of a type has in JSON. named is false if the type does
// not write names.
func (g *graph) zeroName(t types.Type) (name any, named bool) {
	if !g.writesNames(t) {
		return nil, false
	}
	e, err := g.findEnum(t)
	if e == nil || err != nil {
		return nil, false
	}
	return e.zero, true
}

// checkEmbeddedNames refuses a struct that has the methods of an embedded type that writes names, and so
// would be written as a name.
func (g *graph) checkEmbeddedNames(t types.Type) error {
	if embedded := g.findEmbeddedNames(t, nil); embedded != nil {
		return &refusal{fmt.Sprintf("%s embeds %s, whose methods under mcptask:enum strings would write the whole struct as a name",
			g.typeName(t), embedded.Name()), unembedHint}
	}
	return nil
}

// findEmbeddedNames returns an embedded field of a struct whose type writes names, or nil. It does not look
// into structs with methods of their own. outer has the structs around this one.
func (g *graph) findEmbeddedNames(t types.Type, outer []*types.Struct) *types.Var {
	st, ok := t.Underlying().(*types.Struct)
	if from, method := findMethod(t, encodingMethods...); !ok || slices.Contains(outer, st) || method != "" && from == nil {
		return nil
	}
	for i := range st.NumFields() {
		f := st.Field(i)
		if !f.Embedded() {
			continue
		}
		inner := pointee(f.Type())
		if g.writesNames(inner) {
			return f
		}
		if found := g.findEmbeddedNames(inner, append(outer, st)); found != nil {
			return found
		}
	}
	return nil
}
