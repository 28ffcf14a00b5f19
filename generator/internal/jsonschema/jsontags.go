package jsonschema

import (
	"cmp"
	"fmt"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// jsonOptions are the options of encoding/json. newerOptions only have an effect in its second
// version.
var (
	jsonOptions  = []string{"omitempty", "omitzero", "string"}
	newerOptions = []string{"inline", "unknown", "nocase", "strictcase"}
)

// checkJSONTags refuses json tags that encoding/json silently ignores, in a struct of this package
// and in the structs it embeds.
func (g *graph) checkJSONTags(st *types.Struct, open ...*types.Struct) {
	if slices.Contains(open, st) {
		return
	}
	for i := range st.NumFields() {
		v, tag := st.Field(i), reflect.StructTag(st.Tag(i))
		if !g.docs.isOwn(v) {
			continue
		}
		f, ok := readField(v, tag)
		if err := checkJSONTag(f, tag); err != nil {
			g.refuse(f, err)
		}
		inner, pointer := f.promotes()
		if inner == nil || !ok {
			continue
		}
		if pointer && !v.Exported() {
			g.refuse(f, &refusal{"encoding/json cannot set a pointer to a type that is not exported", "embed the struct without the *, or export its type"})
		}
		g.checkJSONTags(inner.Underlying().(*types.Struct), append(open, st)...)
	}
}

func checkJSONTag(f field, tag reflect.StructTag) error {
	text, ok := tag.Lookup("json")
	if !ok {
		return checkIsRead(tag, "json")
	}
	name, options, _ := strings.Cut(text, ",")
	if name != "" && name != "-" && !words.FitsTag(name) {
		return &refusal{fmt.Sprintf("encoding/json ignores the name %q and uses %q", name, f.variable.Name()), "do not use quotes, commas or backslashes"}
	}
	if text == "-" {
		return nil
	}
	if !f.variable.Exported() && !f.variable.Embedded() {
		return &refusal{"encoding/json ignores the field, because it is not exported", "export it, or remove the json tag"}
	}
	for option := range strings.SplitSeq(options, ",") {
		known := slices.Contains(jsonOptions, option) || slices.Contains(newerOptions, option) || strings.Contains(option, ":")
		switch {
		case option == "":
		case option == "string" && !isScalar(f.variable.Type()):
			return &refusal{`"string" has no effect on a field of this type`, "it is for strings, numbers and booleans"}
		case !known:
			hint := cmp.Or(diag.DidYouMean(strings.TrimSpace(option), jsonOptions), "encoding/json knows "+strings.Join(jsonOptions, ", "))
			return &refusal{fmt.Sprintf("%q has no meaning in the json tag", option), hint}
		}
	}
	return nil
}

// checkIsRead refuses a struct tag if a key is in a part of it that package reflect does not read, such as json="x" and
// json: "x".
func checkIsRead(tag reflect.StructTag, key string) error {
	if !regexp.MustCompile(`\b` + key + `\s*[:="']`).MatchString(unreadPart(string(tag))) {
		return nil
	}
	return &refusal{"the struct tag is malformed, so its " + key + " part is not read", `write key:"value" pairs separated by single spaces`}
}

// tagPair matches a pair that package reflect reads, at the start of a struct tag.
var tagPair = regexp.MustCompile(`^ *[^\x00-\x20\x7f:",;=]+:"(\\.|[^"\\])*"`)

// unreadPart returns a struct tag from its first pair that is malformed.
func unreadPart(tag string) string {
	for {
		pair := tagPair.FindString(tag)
		if pair == "" {
			return tag
		}
		tag = tag[len(pair):]
	}
}

// findPointerMarshaler searches the values of a map. It returns a type whose marshal method is on
// its pointer, or nil. encoding/json cannot take the address of map values, so it would encode the
// fields instead. seen holds the types that were searched.
func findPointerMarshaler(t types.Type, seen map[types.Type]bool) types.Type {
	t = types.Unalias(t)
	if seen[t] {
		return nil
	}
	seen[t] = true
	if _, method := findMethod(t, "MarshalJSON", "MarshalText"); method != "" {
		if valueHasMethod(t, method) {
			return nil
		}
		return t
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		return findPointerMarshaler(u.Elem(), seen)
	case *types.Struct:
		fields, _ := jsonFields(u)
		for _, f := range fields {
			if found := findPointerMarshaler(f.variable.Type(), seen); found != nil {
				return found
			}
		}
	}
	return nil
}
