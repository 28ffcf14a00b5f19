package toolschema

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// declaration is a type to declare. It gets its name last: types with the same shape become one, and
// the name of each depends on those of the others.
type declaration struct {
	*model.DeclaredType

	origin origin
	named  *types.Named // stands for the type until it has its name
	schema *schema
	values []*jsontree.Node          // of an enum
	docs   map[*jsontree.Node]string // the meanings of some values

	depth int    // the number of types around it
	path  string // tells it from other types
	shape int    // types of the same shape are one
	final *types.Named
}

// origin is the place that a type comes from.
type origin struct {
	root      string       // the name of a tool's input or output; empty inside one
	what      string       // "the input of the tool x"
	def       string       // the key under $defs, if the schema has one
	property  string       // the property that has the type
	parent    *declaration // whose property it is; nil for a type under $defs
	parts     []string     // "an item", "a value": the parts of the property, outermost first
	prefix    string       // the name of the input or output that contains the type
	described bool         // the field's comment has the description
}

// below returns the origin of the items or values of a type.
func (o origin) below(part string) origin {
	o.parts = append(slices.Clip(o.parts), part)
	o.described = false
	if o.root != "" {
		o.prefix, o.root = o.root, ""
	}
	return o
}

// baseName returns the name of the schema or the property that a type is named after, or "".
func (o origin) baseName() string {
	switch {
	case o.def != "":
		return o.def
	case len(o.parts) > 0:
		return singular(o.property)
	}
	return o.property
}

// shortName returns the name that a type gets if no other type wants it, or "".
func (o origin) shortName() string {
	if name := o.baseName(); name != "" {
		return exportedName(name, nameLimit)
	}
	return ""
}

// longName returns the name of a type whose short name others want too.
func (o origin) longName(parent string) string {
	name := o.baseName()
	if name == "" { // an item of a whole output
		_, name, _ = strings.Cut(o.parts[len(o.parts)-1], " ")
	}
	return joinName(cmp.Or(parent, o.prefix), name)
}

// describe describes the type. several means that it comes from several places.
func (o origin) describe(parent string, several bool) string {
	text := o.what
	switch {
	case o.def != "":
		text = "the schema " + words.QuoteJSON(o.def)
	case o.property != "" && several:
		text = "the property " + words.QuoteJSON(o.property)
	case o.property != "":
		text = "the property " + words.QuoteJSON(o.property) + " of " + parent
	case parent != "":
		text = "a further property of " + parent
	}
	for _, part := range o.parts {
		text = part + " of " + text
	}
	return text
}

// joinName names a part of another type. It shortens the prefix if the name is too long.
func joinName(prefix, name string) string {
	const limit = 3 * nameLimit / 2
	name = camelCase(name, nameLimit)
	if runes, left := []rune(prefix), limit-len([]rune(name)); len(runes) > left {
		prefix = string(runes[:left])
	}
	return prefix + name
}

// singular returns the name of one of several things.
func singular(name string) string {
	lower := strings.ToLower(name)
	cut := func(n int, add string) string { return name[:len(name)-n] + add }
	ends := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(lower, suffix) })
	}
	switch {
	case len(name) < 4 || ends("ss", "us", "is", "news", "series", "ious"):
		return name
	case ends("ies"):
		return cut(3, "y")
	case ends("sses", "shes", "ches", "xes", "tuses"):
		return cut(2, "")
	case ends("s"):
		return cut(1, "")
	}
	return name
}

// declare adds a type. Its fields, constants and comment follow.
func (g *goTypes) declare(s *schema, from origin) *declaration {
	d := &declaration{DeclaredType: &model.DeclaredType{}, origin: from, schema: s, named: g.newNamed(fmt.Sprintf("type%d", len(g.declared)))}
	d.path = from.root + from.prefix
	if from.parent != nil {
		d.depth, d.path = from.parent.depth+1, from.parent.path
	}
	d.path += "/" + from.def + "/" + from.property + "/" + strings.Join(from.parts, "/")
	g.declared = append(g.declared, d)
	g.byType[d.named] = d
	return d
}

func (g *goTypes) newNamed(id string) *types.Named {
	return types.NewNamed(types.NewTypeName(token.NoPos, g.pkg, id, nil), types.NewStruct(nil, nil), nil)
}

// nameTypes merges types of the same shape, names the rest and returns them in the order of their
// first use.
func (g *goTypes) nameTypes() []*model.DeclaredType {
	merged := g.mergeShapes()
	wanted := map[string]int{}
	for _, same := range merged {
		wanted[wantedName(same)]++
	}
	order := slices.Clone(merged)
	slices.SortStableFunc(order, func(a, b []*declaration) int { return compareOrigins(a[0], b[0]) })
	for _, same := range order {
		id := same[0].origin.root
		if id == "" {
			if id = wantedName(same); id == "" || wanted[id] > 1 || g.taken[id] {
				id = same[0].origin.longName(finalName(same[0].origin.parent))
			}
			id = g.taken.takeUnique(id)
		}
		final := g.newNamed(id)
		for _, d := range same {
			d.final = final
		}
	}
	var all []*model.DeclaredType
	for _, same := range merged {
		d := same[0]
		d.finish(g, same)
		all = append(all, d.DeclaredType)
	}
	return all
}

// compareOrigins sorts types from the outside to the inside, whatever the order of the tools.
func compareOrigins(a, b *declaration) int {
	return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(a.path, b.path))
}

func finalName(d *declaration) string {
	if d == nil {
		return ""
	}
	return d.final.Obj().Name()
}

// wantedName returns the short name that most of the merged types have, or "" for a type that is not
// inside another.
func wantedName(same []*declaration) (most string) {
	count := map[string]int{}
	for _, d := range same {
		if name := d.origin.shortName(); d.origin.root == "" && name != "" {
			count[name]++
			if count[name] > count[most] || count[name] == count[most] && name < most {
				most = name
			}
		}
	}
	return most
}

// mergeShapes groups the types that differ in nothing but their names, in the order of their first
// use. The first of each group is that with the fewest types around it. It begins with all types in one
// group and divides the groups until nothing changes, since types may contain themselves.
func (g *goTypes) mergeShapes() [][]*declaration {
	const maxRounds = 100 // more than types nest in real lists
	count := 1
	for range maxRounds {
		var groups [][]*declaration
		index := map[string]int{}
		for _, d := range g.declared {
			text := d.describeShape(g)
			i, known := index[text]
			if !known {
				i = len(groups)
				index[text] = i
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], d)
		}
		for i, same := range groups {
			for _, d := range same {
				d.shape = i
			}
		}
		if len(groups) == count {
			for _, same := range groups {
				slices.SortStableFunc(same, compareOrigins)
			}
			return groups
		}
		count = len(groups)
	}
	return slices.Collect(slices.Chunk(g.declared, 1)) // merge nothing
}

// describeShape describes a type, with the shapes of the types that it uses. The input or output of
// a tool keeps a type of its own.
func (d *declaration) describeShape(g *goTypes) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d;", d.origin.root, d.shape)
	if d.Type != nil {
		b.WriteString(g.typeShape(d.Type))
	}
	for _, v := range d.values {
		fmt.Fprintf(&b, "%s %q;", v.Compact(), d.docs[v])
	}
	for _, f := range d.Fields {
		fmt.Fprintf(&b, "%q %v %v %s %q;", f.JSON, f.Optional, f.Rest, g.typeShape(f.Type), f.Doc)
	}
	return b.String()
}

func (g *goTypes) typeShape(t types.Type) string {
	shape := func(d *declaration) types.Type { return g.newNamed(fmt.Sprintf("shape%d", d.shape)) }
	return types.TypeString(g.rewrite(t, shape), nil)
}

// rewrite replaces the types that are declared here.
func (g *goTypes) rewrite(t types.Type, by func(*declaration) types.Type) types.Type {
	switch t := t.(type) {
	case *types.Named:
		if d := g.byType[t]; d != nil {
			return by(d)
		}
	case *types.Pointer:
		return types.NewPointer(g.rewrite(t.Elem(), by))
	case *types.Slice:
		return types.NewSlice(g.rewrite(t.Elem(), by))
	case *types.Map:
		return types.NewMap(t.Key(), g.rewrite(t.Elem(), by))
	}
	return t
}

// finalType replaces the types that are declared here by those with names.
func (g *goTypes) finalType(t types.Type) types.Type {
	return g.rewrite(t, func(d *declaration) types.Type { return d.final })
}

// finish fills in the fields that depend on names.
func (d *declaration) finish(g *goTypes, same []*declaration) {
	d.Name = d.final.Obj().Name()
	if d.Type != nil {
		d.Type = g.finalType(d.Type)
	}
	for _, f := range d.Fields {
		f.Type = g.finalType(f.Type)
	}
	consts := map[*jsontree.Node]string{}
	for _, v := range sortedBy(d.values, func(v *jsontree.Node) string { return namingOrder(v.Compact()) }) {
		text, _ := v.Text()
		consts[v] = g.taken.takeUnique(d.Name + camelCase(text, nameLimit))
	}
	for _, v := range d.values {
		text, _ := v.Text()
		d.Consts = append(d.Consts, model.Const{Name: consts[v], Doc: constDoc(consts[v], d.docs[v]), Value: text})
	}
	d.Doc = d.typeDoc(same)
}

// typeDoc returns the doc comment of a type. Types with the same shape may have been described
// differently; then the comment has none of the descriptions.
func (d *declaration) typeDoc(same []*declaration) string {
	doc := []string{d.Name + " is " + d.origin.describe(finalName(d.origin.parent), len(same) > 1) + "."}
	for _, d := range same {
		var own []string
		if d.origin.described {
			// The field's comment has the description.
		} else if text := d.schema.text("description"); text != "" {
			own = append(own, text)
		} else if title := d.schema.text("title"); strings.Contains(title, " ") {
			own = append(own, title)
		}
		if text := d.schema.describeAlternatives(); text != "" {
			own = append(own, text)
		}
		if text := d.schema.describeHiddenKeywords(); text != "" {
			own = append(own, text)
		}
		switch {
		case len(doc) == 1:
			doc = append(doc, own...)
		case len(own) > 0 && !slices.Equal(own, doc[1:]):
			return formatProse(doc[0])
		}
	}
	return formatProse(doc...)
}
