package jsonschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// tag is the parsed jsonschema tag of a field.
type tag struct {
	ignored     bool
	nullable    bool
	description string // the whole tag, in the style of the Go SDK
	parts       []part
}

// part is one part of a tag in the style of invopop: required, or key=value.
type part struct {
	text, key, value string
	hasValue         bool
}

// readTag parses the jsonschema tag of a field.
func readTag(st reflect.StructTag) (tag, error) {
	text, ok := st.Lookup("jsonschema")
	if !ok {
		if strings.Contains(string(st), "jsonschema:") {
			return tag{}, &refusal{"the struct tag is malformed, so its jsonschema part is not read", "write key:\"value\" pairs separated by single spaces"}
		}
		return tag{}, nil
	}
	if text == "-" {
		return tag{ignored: true}, nil
	}
	words := splitParts(text)
	if first := words[0]; !keyStart.MatchString(first) && !slices.Contains(flagKeywords, first) {
		return readDescriptionTag(text, words)
	}
	var t tag
	for _, word := range words {
		p := part{text: word}
		p.key, p.value, p.hasValue = strings.Cut(word, "=")
		if p.key == "nullable" && !p.hasValue {
			t.nullable = true
			continue
		}
		t.parts = append(t.parts, p)
	}
	return t, nil
}

// readDescriptionTag reads a tag that is a description. It refuses one that mixes both styles.
func readDescriptionTag(text string, words []string) (tag, error) {
	if strings.TrimSpace(text) == "" {
		return tag{}, &refusal{"the jsonschema tag is empty", "remove it"}
	}
	for i, word := range words {
		key, _, hasValue := strings.Cut(strings.TrimSpace(word), "=")
		if hasValue && isKeyword(key) || !hasValue && slices.Contains(flagKeywords, key) && i > 0 {
			return tag{}, &refusal{fmt.Sprintf("%q has no meaning in a jsonschema tag that starts with a description", strings.TrimSpace(word)),
				"start the tag with description="}
		}
	}
	if isKeyword(text) {
		return tag{}, &refusal{fmt.Sprintf("%q has no meaning in a jsonschema tag", text), "write " + text + "=value"}
	}
	if hint := diag.DidYouMean(text, flagKeywords); hint != "" {
		return tag{}, &refusal{fmt.Sprintf("%q has no meaning in a jsonschema tag", text), hint}
	}
	return tag{description: text}, nil
}

func isKeyword(key string) bool {
	if _, ok := commonKeywords[key]; ok {
		return true
	}
	for _, keywords := range typeKeywords {
		if _, ok := keywords[key]; ok {
			return true
		}
	}
	return false
}

// splitParts splits at commas without a backslash.
func splitParts(text string) []string {
	var parts []string
	start := 0
	for i := range len(text) {
		if text[i] == ',' && (i == 0 || text[i-1] != '\\') {
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

// overrideTypes are Go types with the JSON types that a type= part can name.
var overrideTypes = map[string]reflect.Type{
	"string": reflect.TypeFor[string](), "integer": reflect.TypeFor[int64](), "number": reflect.TypeFor[float64](),
	"boolean": reflect.TypeFor[bool](), "array": reflect.TypeFor[[]any](), "object": reflect.TypeFor[map[string]any](),
}

// overrideType returns the type that a type= part gives a field.
func (t tag) overrideType() (reflect.Type, bool) {
	for _, p := range t.parts {
		switch p.key {
		case "type":
			if rt, ok := overrideTypes[p.value]; ok {
				return rt, true
			}
			return reflect.TypeFor[any](), true
		case "oneof_type", "anyof_type", "oneof_ref", "anyof_ref":
			return reflect.TypeFor[any](), true
		}
	}
	return nil, false
}

// checkParts refuses parts that have no meaning for the type. The reflector ignores them silently.
func (t tag) checkParts(rt reflect.Type, quoted bool) []*refusal {
	var bad []*refusal
	kind := schemaType(rt)
	if quoted {
		kind = "string"
	}
	valid := typeKeywords[kind]
	if kind == "array" {
		valid = arrayKeywords(rt)
	}
	for i, p := range t.parts {
		if !p.hasValue && slices.Contains(flagKeywords, p.key) {
			continue
		}
		check, ok := commonKeywords[p.key]
		if !ok {
			check, ok = valid[p.key]
		}
		switch {
		case !ok || !p.hasValue:
			bad = append(bad, newPartRefusal(t.parts[:i+1], kind, valid))
		case !check.isValid(strings.ReplaceAll(p.value, `\,`, ",")):
			bad = append(bad, &refusal{fmt.Sprintf("the value of %q in the jsonschema tag %s", p.text, check.wrong), ""})
		}
	}
	if len(bad) == 0 {
		bad = t.checkBounds()
	}
	return bad
}

// checkBounds refuses bounds that exclude every value.
func (t tag) checkBounds() []*refusal {
	var bad []*refusal
	for _, pair := range []struct {
		low, high string
		apart     bool // the bound itself is excluded
	}{
		{"minimum", "maximum", false}, {"exclusiveMinimum", "maximum", true},
		{"minimum", "exclusiveMaximum", true}, {"exclusiveMinimum", "exclusiveMaximum", true},
		{"minLength", "maxLength", false}, {"minItems", "maxItems", false},
	} {
		low, high := t.lastValue(pair.low), t.lastValue(pair.high)
		from, errFrom := strconv.ParseFloat(low, 64)
		to, errTo := strconv.ParseFloat(high, 64)
		if errFrom == nil && errTo == nil && (from > to || pair.apart && low == high) {
			bad = append(bad, &refusal{fmt.Sprintf("%q and %q in the jsonschema tag allow no value", pair.low+"="+low, pair.high+"="+high), ""})
		}
	}
	return bad
}

// lastValue returns the last value of a keyword, which is the one that counts, or "".
func (t tag) lastValue(key string) string {
	for _, p := range slices.Backward(t.parts) {
		if p.key == key {
			return p.value
		}
	}
	return ""
}

// newPartRefusal refuses the last of the parts. The parts before it decide the hint.
func newPartRefusal(parts []part, kind string, valid map[string]valueCheck) *refusal {
	p := parts[len(parts)-1]
	names := slices.AppendSeq(slices.Clone(flagKeywords), maps.Keys(commonKeywords))
	names = slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(valid))))
	hint := ""
	if near := diag.Nearest(p.key, names); near != "" && near != p.key {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	switch {
	case strings.TrimSpace(p.key) != p.key && isKeyword(strings.TrimSpace(p.key)):
		hint = "remove the spaces around the comma"
	case !p.hasValue && isKeyword(p.key):
		hint = "write " + p.key + "=value"
	case !p.hasValue && followsEnum(parts):
		hint = "each choice has its own enum=: write enum=" + strings.TrimSpace(p.key)
	case !p.hasValue && hint == "":
		hint = `escape a comma in a value as \\,`
	case isKeyword(p.key) && kind != "":
		hint = "it has no meaning on " + withArticle(kind)
	case isKeyword(p.key):
		hint = "it has no meaning on a field of this type"
	}
	return &refusal{fmt.Sprintf("%q has no meaning in the jsonschema tag", p.text), hint}
}

// followsEnum reports whether the last part with a value is a choice of an enum.
func followsEnum(parts []part) bool {
	for _, p := range slices.Backward(parts) {
		if p.hasValue {
			return p.key == "enum"
		}
	}
	return false
}

func withArticle(kind string) string {
	if strings.ContainsRune("aio", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// arrayKeywords returns the keywords of an array and those of its items.
func arrayKeywords(rt reflect.Type) map[string]valueCheck {
	all := map[string]valueCheck{}
	items := schemaType(rt.Elem())
	if items != "array" {
		maps.Copy(all, typeKeywords[items])
	}
	maps.Copy(all, typeKeywords["array"])
	return all
}

// schemaType returns the type that the reflector uses, or "" for references and any value.
func schemaType(rt reflect.Type) string {
	switch kind := rt.Kind(); {
	case rt == specialTypes["time.Time"] || kind == reflect.String:
		return "string"
	case kind == reflect.Slice && rt.Elem().Kind() == reflect.Uint8:
		return "string"
	case kind == reflect.Bool:
		return "boolean"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return "integer"
	case kind == reflect.Float32 || kind == reflect.Float64:
		return "number"
	case kind == reflect.Slice || kind == reflect.Array:
		return "array"
	case kind == reflect.Map:
		return "object"
	}
	return ""
}

// rewrite returns the tag for the reflector, with our own name.
func (t tag) rewrite(f field, name string) reflect.StructTag {
	options := ""
	if f.optional {
		options += ",omitempty"
	}
	if f.quoted {
		options += ",string"
	}
	text := "json:" + strconv.Quote(name+options)
	if len(t.parts) > 0 {
		words := make([]string, len(t.parts))
		for i, p := range t.parts {
			words[i] = p.text
		}
		text += " jsonschema:" + strconv.Quote(strings.Join(words, ","))
	}
	for _, name := range []string{"jsonschema_description", "jsonschema_extras"} {
		if value, ok := f.tag.Lookup(name); ok {
			text += " " + name + ":" + strconv.Quote(value)
		}
	}
	return reflect.StructTag(text)
}

// valueCheck is a condition for the value of a keyword.
type valueCheck struct {
	isValid func(value string) bool
	wrong   string // what is said of an invalid value
}

var (
	anyText    = valueCheck{func(string) bool { return true }, ""}
	nonempty   = valueCheck{func(v string) bool { return v != "" }, "has no value"}
	boolean    = valueCheck{func(v string) bool { return v == "true" || v == "false" }, "is neither true nor false"}
	onlyTrue   = valueCheck{func(v string) bool { return v == "true" }, "is not true"}
	expression = valueCheck{func(v string) bool { return succeeds(regexp.Compile(v)) }, "is not a valid Go regular expression"}
	count      = valueCheck{func(v string) bool { return succeeds(strconv.ParseUint(v, 10, 64)) }, "is not a whole number"}
	integer    = valueCheck{func(v string) bool { return succeeds(strconv.ParseInt(v, 10, 64)) }, "is not an integer"}
	number     = valueCheck{func(v string) bool { return json.Valid([]byte(v)) && strings.Trim(v, "+-0123456789.eE") == "" }, "is not a number"}
	typeName   = valueCheck{isTypeList, "is not a JSON type"}
)

func succeeds[T any](_ T, err error) bool { return err == nil }

// isTypeList reports whether a value names JSON types, separated by semicolons.
func isTypeList(value string) bool {
	return !slices.ContainsFunc(strings.Split(value, ";"), func(name string) bool {
		return !slices.Contains([]string{"string", "number", "integer", "boolean", "array", "object", "null"}, name)
	})
}

// commonKeywords are valid for every field, typeKeywords for fields of one type.
var (
	commonKeywords = map[string]valueCheck{
		"title": nonempty, "description": nonempty, "type": typeName, "anchor": nonempty,
		"oneof_required": nonempty, "anyof_required": nonempty, "oneof_ref": nonempty, "anyof_ref": nonempty,
		"oneof_type": typeName, "anyof_type": typeName,
	}
	typeKeywords = map[string]map[string]valueCheck{
		"string": {
			"minLength": count, "maxLength": count, "pattern": expression, "format": nonempty, "readOnly": boolean,
			"writeOnly": boolean, "default": anyText, "example": anyText, "enum": anyText,
		},
		"number": {
			"multipleOf": number, "minimum": number, "maximum": number, "exclusiveMinimum": number,
			"exclusiveMaximum": number, "default": number, "example": number, "enum": number,
		},
		"integer": {
			"multipleOf": number, "minimum": number, "maximum": number, "exclusiveMinimum": number,
			"exclusiveMaximum": number, "default": integer, "example": integer, "enum": integer,
		},
		"boolean": {"default": boolean},
		"array":   {"minItems": count, "maxItems": count, "uniqueItems": onlyTrue},
	}
	flagKeywords = []string{"required", "nullable"}
	keyStart     = regexp.MustCompile(`^[A-Za-z_]\w*=`)
)
