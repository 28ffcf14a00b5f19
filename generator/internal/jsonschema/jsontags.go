package jsonschema

import (
	"fmt"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// jsonOptions are what encoding/json knows; newerOptions mean something to its second version alone.
var (
	jsonOptions  = []string{"omitempty", "omitzero", "string"}
	newerOptions = []string{"inline", "unknown", "nocase", "strictcase"}
)

// checkJSONTags refuses json tags of this package that encoding/json passes over in silence, in a struct
// and in those that it embeds.
func (g *graph) checkJSONTags(owner string, st *types.Struct, open ...*types.Struct) {
	if slices.Contains(open, st) {
		return
	}
	first := map[string]field{}
	for i := range st.NumFields() {
		v, tag := st.Field(i), reflect.StructTag(st.Tag(i))
		if !g.docs.isOwn(v) {
			continue
		}
		f, ok := readField(v, tag)
		if err := wrongJSONTag(f, tag); err != nil {
			g.refuseField(owner, f, err)
		}
		inner, _, _ := embeddedStruct(v, f)
		if inner != nil && ok {
			g.checkJSONTags(owner, inner, append(open, st)...)
		}
		if inner != nil || !ok || !v.Exported() {
			continue
		}
		if other, twice := first[f.name]; twice && other.tagged == f.tagged {
			g.refuseField(owner, f, &refusal{fmt.Sprintf("%s has the name %q in JSON too, so encoding/json leaves out both", other.variable.Name(), f.name),
				"give one of them another name"})
			continue
		}
		first[f.name] = f
	}
}

func wrongJSONTag(f field, tag reflect.StructTag) error {
	text, ok := tag.Lookup("json")
	if !ok {
		if strings.Contains(string(tag), "json:") {
			return &refusal{"the struct tag is malformed, so its json part is not read", `write key:"value" pairs separated by single spaces`}
		}
		return nil
	}
	name, options, _ := strings.Cut(text, ",")
	if name != "" && name != "-" && !validName(name) {
		return &refusal{fmt.Sprintf("encoding/json takes no name such as %q, it writes %q", name, f.variable.Name()), "leave out quotes, commas and backslashes"}
	}
	if text == "-" {
		return nil
	}
	for option := range strings.SplitSeq(options, ",") {
		known := slices.Contains(jsonOptions, option) || slices.Contains(newerOptions, option) || strings.Contains(option, ":")
		switch {
		case option == "":
		case option == "string" && !isScalar(f.variable.Type()):
			return &refusal{`"string" means nothing in the json tag of a field of this type`, "it is for strings, numbers and booleans"}
		case !known:
			hint := "encoding/json knows " + strings.Join(jsonOptions, ", ")
			if near := diag.Nearest(strings.TrimSpace(option), jsonOptions); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return &refusal{fmt.Sprintf("%q means nothing in the json tag", option), hint}
		}
	}
	return nil
}

// needsAddress finds in the values of a map what writes itself by a pointer: encoding/json has no address
// of them, so it would write the fields.
func needsAddress(t types.Type) types.Type {
	return findAddressed(t, map[types.Type]bool{})
}

func findAddressed(t types.Type, seen map[types.Type]bool) types.Type {
	t = types.Unalias(t)
	if seen[t] {
		return nil
	}
	seen[t] = true
	if named, ok := t.(*types.Named); ok {
		for _, name := range []string{"MarshalJSON", "MarshalText"} {
			if hasMethod(named, name) && !hasOfValue(named, name) {
				return t
			}
		}
		if hasMethod(t, "MarshalJSON", "MarshalText") {
			return nil
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		return findAddressed(u.Elem(), seen)
	case *types.Struct:
		for _, f := range jsonFields(u) {
			if found := findAddressed(f.variable.Type(), seen); found != nil {
				return found
			}
		}
	}
	return nil
}
