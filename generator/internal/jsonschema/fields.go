package jsonschema

import (
	"cmp"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// field is a member of a struct's JSON object.
type field struct {
	name     string // the JSON name
	variable *types.Var
	tag      reflect.StructTag
	optional bool // omitted when empty, or reached through a pointer that may be nil
	omitted  bool // omitted when empty
	quoted   bool // the ",string" option

	tagged bool
	index  []int
}

// jsonFields lists the members of a struct as encoding/json does, including those of embedded
// structs. Of members with the same name, the shallowest wins, then a tagged one. If neither
// decides, all are dropped: clashes has two of each such name.
func jsonFields(st *types.Struct) (fields []field, clashes [][2]field) {
	type level struct {
		st       *types.Struct
		name     string // of the type; "" for the outermost
		index    []int
		optional bool
	}
	var all []field
	visited := map[string]bool{}
	for current, next := []level{{st: st}}, []level(nil); len(current) > 0; current, next = next, nil {
		count := map[string]int{}
		for _, l := range current {
			count[l.name]++
		}
		for _, l := range current {
			if visited[l.name] {
				continue
			}
			visited[l.name] = true
			for i := range l.st.NumFields() {
				f, ok := readField(l.st.Field(i), reflect.StructTag(l.st.Tag(i)))
				if !ok {
					continue
				}
				f.index, f.optional = append(slices.Clone(l.index), i), f.optional || l.optional
				if inner, pointer := f.promotes(); inner != nil {
					next = append(next, level{inner.Underlying().(*types.Struct), types.TypeString(inner, nil), f.index, l.optional || pointer})
					continue
				}
				// encoding/json encodes an embedded struct with a name in its tag even if it is not
				// exported.
				if !f.variable.Exported() && !f.embedsStruct() {
					continue
				}
				for range min(2, count[l.name]) { // a type embedded twice at the same depth hides itself
					all = append(all, f)
				}
			}
		}
	}
	return selectDominant(all)
}

// readField reads a field's json tag. It returns false if JSON excludes the field.
func readField(v *types.Var, tag reflect.StructTag) (field, bool) {
	f := field{name: v.Name(), variable: v, tag: tag}
	text := tag.Get("json")
	if text == "-" {
		return f, false
	}
	name, options, _ := strings.Cut(text, ",")
	if words.FitsTag(name) {
		f.name, f.tagged = name, true
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			f.optional, f.omitted = true, true
		case "string":
			f.quoted = isScalar(v.Type())
		}
	}
	return f, true
}

// promotes returns the type of the struct whose fields an embedded field promotes, or nil. pointer
// says that the field is a pointer to it.
func (f field) promotes() (inner types.Type, pointer bool) {
	if f.tagged || !f.embedsStruct() {
		return nil, false
	}
	_, pointer = types.Unalias(f.variable.Type()).(*types.Pointer)
	return pointee(f.variable.Type()), pointer
}

func (f field) embedsStruct() bool {
	_, ok := pointee(f.variable.Type()).Underlying().(*types.Struct)
	return ok && f.variable.Embedded()
}

// selectDominant picks one field per name, in source order.
func selectDominant(all []field) (fields []field, clashes [][2]field) {
	groups := map[string][]field{}
	for _, f := range all {
		groups[f.name] = append(groups[f.name], f)
	}
	rank := func(f field) int { // the lowest one wins
		if f.tagged {
			return 2*len(f.index) - 1
		}
		return 2 * len(f.index)
	}
	for _, group := range groups {
		slices.SortStableFunc(group, func(a, b field) int { return cmp.Compare(rank(a), rank(b)) })
		if len(group) == 1 || rank(group[0]) < rank(group[1]) {
			fields = append(fields, group[0])
		} else {
			clashes = append(clashes, [2]field(group[:2]))
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return slices.Compare(a.index, b.index) })
	slices.SortFunc(clashes, func(a, b [2]field) int { return slices.Compare(a[1].index, b[1].index) })
	return fields, clashes
}

// isScalar reports whether the ",string" option has an effect on a type.
func isScalar(t types.Type) bool {
	b, ok := pointee(t).Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsInteger|types.IsFloat|types.IsBoolean|types.IsString) != 0
}
