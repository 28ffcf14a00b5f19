package jsonschema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// tag is what the jsonschema tag of a field says.
type tag struct {
	ignored     bool
	nullable    bool
	description string // a tag in the Go SDK's way: the description alone
	parts       []part
}

// part is one part of a tag in invopop's way: required, or key=value.
type part struct {
	text, key, value string
	hasValue         bool
}

// check tells what is wrong with a value; empty where it is right.
type check func(value string) string

func anyText(value string) string {
	if value == "" {
		return "has no value"
	}
	return ""
}

func anything(string) string { return "" }

func count(value string) string {
	if _, err := strconv.ParseUint(value, 10, 64); err != nil {
		return "is not a whole number"
	}
	return ""
}

func number(value string) string {
	if !json.Valid([]byte(value)) || strings.Trim(value, "+-0123456789.eE") != "" {
		return "is not a number"
	}
	return ""
}

func integer(value string) string {
	if _, err := strconv.ParseInt(value, 10, 64); err != nil {
		return "is not an integer"
	}
	return ""
}

func boolean(value string) string {
	if value != "true" && value != "false" {
		return "is neither true nor false"
	}
	return ""
}

func expression(value string) string {
	if _, err := regexp.Compile(value); err != nil {
		return "is not a regular expression that Go reads"
	}
	return ""
}

func typeName(value string) string {
	for name := range strings.SplitSeq(value, ";") {
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "array", "object", "null"}, name) {
			return "is not a type of JSON"
		}
	}
	return ""
}

// anywhere are the keywords of every field, byType those of a type.
var (
	anywhere = map[string]check{
		"title": anyText, "description": anyText, "type": typeName, "anchor": anyText,
		"oneof_required": anyText, "anyof_required": anyText, "oneof_ref": anyText, "anyof_ref": anyText,
		"oneof_type": typeName, "anyof_type": typeName,
	}
	byType = map[string]map[string]check{
		"string": {
			"minLength": count, "maxLength": count, "pattern": expression, "format": anyText, "readOnly": boolean,
			"writeOnly": boolean, "default": anything, "example": anything, "enum": anything,
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
		"array":   {"minItems": count, "maxItems": count, "uniqueItems": func(v string) string { return onlyTrue(v) }},
	}
	bare     = []string{"required", "nullable"}
	keyStart = regexp.MustCompile(`^[A-Za-z_]\w*=`)
)

func onlyTrue(value string) string {
	if value != "true" {
		return "is not true"
	}
	return ""
}

// readTag reads the jsonschema tag of a field.
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
	if first := words[0]; !keyStart.MatchString(first) && !slices.Contains(bare, first) {
		return plainTag(text, words)
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

// plainTag reads a tag that is a description, and refuses one that is half of each kind.
func plainTag(text string, words []string) (tag, error) {
	if strings.TrimSpace(text) == "" {
		return tag{}, &refusal{"the jsonschema tag is empty", "leave it out"}
	}
	for i, word := range words {
		key, _, hasValue := strings.Cut(strings.TrimSpace(word), "=")
		if hasValue && isKeyword(key) || !hasValue && slices.Contains(bare, key) && i > 0 {
			return tag{}, &refusal{fmt.Sprintf("%q means nothing in a jsonschema tag that starts with a description", strings.TrimSpace(word)),
				"start the tag with description="}
		}
	}
	if isKeyword(text) {
		return tag{}, &refusal{fmt.Sprintf("%q means nothing in a jsonschema tag", text), "write " + text + "=value"}
	}
	if near := diag.Nearest(text, bare); near != "" {
		return tag{}, &refusal{fmt.Sprintf("%q means nothing in a jsonschema tag", text), fmt.Sprintf("did you mean %q?", near)}
	}
	return tag{description: text}, nil
}

func isKeyword(key string) bool {
	if _, ok := anywhere[key]; ok {
		return true
	}
	for _, keywords := range byType {
		if _, ok := keywords[key]; ok {
			return true
		}
	}
	return false
}

// splitParts splits at commas that no backslash escapes.
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

// override is the reflect type that a type= part puts in a field's place.
func (t tag) override() (reflect.Type, bool) {
	for _, p := range t.parts {
		switch p.key {
		case "type":
			switch p.value {
			case "string":
				return reflect.TypeFor[string](), true
			case "integer":
				return reflect.TypeFor[int64](), true
			case "number":
				return reflect.TypeFor[float64](), true
			case "boolean":
				return reflect.TypeFor[bool](), true
			case "array":
				return reflect.TypeFor[[]any](), true
			case "object":
				return reflect.TypeFor[map[string]any](), true
			}
			return reflect.TypeFor[any](), true
		case "oneof_type", "anyof_type", "oneof_ref", "anyof_ref":
			return reflect.TypeFor[any](), true
		}
	}
	return nil, false
}

// check refuses parts that mean nothing on a field of the type; invopop leaves them out in silence.
func (t tag) check(rt reflect.Type, quoted bool) []*refusal {
	var bad []*refusal
	kind := schemaType(rt)
	if quoted {
		kind = "string"
	}
	valid := byType[kind]
	if kind == "array" {
		valid = arrayKeywords(rt)
	}
	for _, p := range t.parts {
		if !p.hasValue && slices.Contains(bare, p.key) {
			continue
		}
		find, ok := anywhere[p.key]
		if !ok {
			find, ok = valid[p.key]
		}
		switch {
		case !ok || !p.hasValue:
			bad = append(bad, meaningless(p, kind, valid))
		default:
			if wrong := find(strings.ReplaceAll(p.value, `\,`, ",")); wrong != "" {
				bad = append(bad, &refusal{fmt.Sprintf("the value of %q in the jsonschema tag %s", p.text, wrong), ""})
			}
		}
	}
	if len(bad) == 0 {
		bad = t.checkBounds()
	}
	return bad
}

// checkBounds refuses bounds that no value is within.
func (t tag) checkBounds() []*refusal {
	var bad []*refusal
	for _, pair := range []struct {
		low, high string
		apart     bool // the bound itself is out
	}{
		{"minimum", "maximum", false}, {"exclusiveMinimum", "maximum", true},
		{"minimum", "exclusiveMaximum", true}, {"exclusiveMinimum", "exclusiveMaximum", true},
		{"minLength", "maxLength", false}, {"minItems", "maxItems", false},
	} {
		low, high := t.last(pair.low), t.last(pair.high)
		from, errFrom := strconv.ParseFloat(low, 64)
		to, errTo := strconv.ParseFloat(high, 64)
		if errFrom == nil && errTo == nil && (from > to || pair.apart && low == high) {
			bad = append(bad, &refusal{fmt.Sprintf("%q and %q in the jsonschema tag leave no value", pair.low+"="+low, pair.high+"="+high), ""})
		}
	}
	return bad
}

// last is the value of a keyword, of which the last counts; empty where there is none.
func (t tag) last(key string) string {
	for _, p := range slices.Backward(t.parts) {
		if p.key == key {
			return p.value
		}
	}
	return ""
}

func meaningless(p part, kind string, valid map[string]check) *refusal {
	names := slices.Clone(bare)
	for name := range anywhere {
		names = append(names, name)
	}
	for name := range valid {
		names = append(names, name)
	}
	slices.Sort(names)
	hint := ""
	if near := diag.Nearest(p.key, names); near != "" && near != p.key {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	switch {
	case strings.TrimSpace(p.key) != p.key && isKeyword(strings.TrimSpace(p.key)):
		hint = "leave out the spaces around the comma"
	case !p.hasValue && isKeyword(p.key):
		hint = "write " + p.key + "=value"
	case !p.hasValue && hint == "":
		hint = `escape a comma in a value as \\,`
	case isKeyword(p.key) && kind != "":
		hint = "it has no meaning on " + article(kind)
	case isKeyword(p.key):
		hint = "it has no meaning on a field of this type"
	}
	return &refusal{fmt.Sprintf("%q means nothing in the jsonschema tag", p.text), hint}
}

func article(kind string) string {
	if strings.ContainsRune("aio", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// arrayKeywords are those of an array and those that reach its items.
func arrayKeywords(rt reflect.Type) map[string]check {
	all := map[string]check{}
	items := schemaType(rt.Elem())
	if items != "array" {
		for name, c := range byType[items] {
			all[name] = c
		}
	}
	for name, c := range byType["array"] {
		all[name] = c
	}
	return all
}

// schemaType is the type that the reflector gives; empty for references and anything.
func schemaType(rt reflect.Type) string {
	switch kind := rt.Kind(); {
	case rt == special["time.Time"] || kind == reflect.String:
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

// rewrite makes the tag that the reflector sees, with a name of ours.
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
