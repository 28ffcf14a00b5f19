package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// keyword is a part of a jsonschema tag, or an argument of //mcptask:schema.
type keyword struct {
	// kinds are the JSON types that it describes. It describes any schema if there are none.
	kinds []string
	// set checks a value and sets it. Its error completes the sentence "the value of ...".
	set func(s *schema, value string) error
}

var (
	strs    = []string{"string"}
	numbers = []string{"number", "integer"}
	arrays  = []string{"array"}
	scalars = []string{"string", "number", "integer", "boolean"}
	chosen  = []string{"string", "number", "integer"}
)

// keywords has every keyword with a value.
var keywords = map[string]keyword{
	"title":            {nil, member(func(s *schema) any { return &s.Title })},
	"description":      {nil, member(func(s *schema) any { return &s.Description })},
	"type":             {nil, setType},
	"format":           {strs, member(func(s *schema) any { return &s.Format })},
	"minLength":        {strs, member(func(s *schema) any { return &s.MinLength })},
	"maxLength":        {strs, member(func(s *schema) any { return &s.MaxLength })},
	"pattern":          {strs, setPattern},
	"readOnly":         {strs, member(func(s *schema) any { return &s.ReadOnly })},
	"writeOnly":        {strs, member(func(s *schema) any { return &s.WriteOnly })},
	"minimum":          {numbers, member(func(s *schema) any { return &s.Minimum })},
	"maximum":          {numbers, member(func(s *schema) any { return &s.Maximum })},
	"exclusiveMinimum": {numbers, member(func(s *schema) any { return &s.ExclusiveMinimum })},
	"exclusiveMaximum": {numbers, member(func(s *schema) any { return &s.ExclusiveMaximum })},
	"multipleOf":       {numbers, setMultipleOf},
	"minItems":         {arrays, member(func(s *schema) any { return &s.MinItems })},
	"maxItems":         {arrays, member(func(s *schema) any { return &s.MaxItems })},
	"uniqueItems":      {arrays, setUniqueItems},
	"enum":             {chosen, setChoice},
	"example":          {chosen, setExample},
	"default":          {scalars, setDefault},
}

// repeated are the keywords that may occur several times, once for each value.
var repeated = []string{"enum", "example"}

// flagKeywords have no value.
var flagKeywords = []string{"required", "nullable"}

// isKeyword reports whether a name is a keyword with a value.
func isKeyword(name string) bool { return keywords[name].set != nil }

// nearestKeyword returns the keyword that a name may stand for on a JSON type, or "".
func nearestKeyword(name, kind string) string {
	names := slices.Clone(flagKeywords)
	for keyword, k := range keywords {
		if len(k.kinds) == 0 || slices.Contains(k.kinds, kind) || kind == "" {
			names = append(names, keyword)
		}
	}
	slices.Sort(names)
	return diag.Nearest(name, names)
}

// writeKeyword shows how to write a keyword with a value.
func writeKeyword(name string) string {
	if slices.Contains([]string{"uniqueItems", "readOnly", "writeOnly"}, name) {
		return "write " + name + "=true"
	}
	return "write " + name + "=value"
}

// member returns a function that reads a value into a member of a schema, as the Go type of the
// member says.
func member(of func(*schema) any) func(*schema, string) error {
	return func(s *schema, value string) (err error) {
		switch m := of(s).(type) {
		case *string:
			if *m = value; value == "" {
				return errors.New("has no value")
			}
		case *bool:
			*m, err = readBool(value)
		case *json.Number:
			*m, err = readNumber(value)
		case **uint64:
			n, err := strconv.ParseUint(value, 10, 64)
			if *m = &n; err != nil {
				return errors.New("is not a whole number")
			}
		}
		return err
	}
}

func readBool(value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, errors.New("is neither true nor false")
	}
	return value == "true", nil
}

// readNumber checks a number. A float64 must hold it, as most clients count in this type.
func readNumber(value string) (json.Number, error) {
	if !json.Valid([]byte(value)) || strings.Trim(value, "+-0123456789.eE") != "" {
		return "", errors.New("is not a number")
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(value), "e")
	switch f, err := strconv.ParseFloat(value, 64); {
	case err != nil:
		return "", errors.New("is too large for a number")
	case f == 0 && strings.ContainsAny(mantissa, "123456789"):
		return "", errors.New("is too close to zero for a number")
	}
	return json.Number(value), nil
}

func setMultipleOf(s *schema, value string) (err error) {
	if s.MultipleOf, err = readNumber(value); err == nil && rational(s.MultipleOf).Sign() <= 0 {
		return errors.New("is not greater than 0")
	}
	return err
}

func setUniqueItems(s *schema, value string) error {
	if s.UniqueItems = value == "true"; !s.UniqueItems {
		return errors.New("is not true")
	}
	return nil
}

func setPattern(s *schema, value string) error {
	s.Pattern = value
	return checkPattern(value)
}

func setChoice(s *schema, value string) error {
	v, err := readValue(s.Type, value)
	if slices.Contains(s.Enum, v) {
		return errors.New("is a choice twice")
	}
	s.Enum = append(s.Enum, v)
	return err
}

func setExample(s *schema, value string) error {
	v, err := readValue(s.Type, value)
	s.Examples = append(s.Examples, v)
	return err
}

// setDefault sets the default of a value, or adds one to the default of a list.
func setDefault(s *schema, value string) (err error) {
	if s.Type != "array" {
		s.Default, err = readValue(s.Type, value)
		return err
	}
	v, err := readValue(s.Items.Type, value)
	list, _ := s.Default.([]any)
	s.Default = append(list, v)
	return err
}

// readValue reads a value of a JSON type.
func readValue(kind, value string) (any, error) {
	switch kind {
	case "boolean":
		return readBool(value)
	case "number":
		return readNumber(value)
	case "integer":
		if _, ok := new(big.Int).SetString(value, 10); !ok || !json.Valid([]byte(value)) {
			return nil, errors.New("is not an integer")
		}
		return json.Number(value), nil
	}
	return value, nil
}

func setType(s *schema, value string) error {
	if !slices.Contains([]string{"string", "number", "integer", "boolean", "array", "object", "null"}, value) {
		return errors.New("is not a JSON type")
	}
	s.Type = value
	return nil
}

// part is one part of a tag in the style of invopop: required, or key=value.
type part struct {
	text, key, value string
	hasValue         bool
}

// describe applies the parts of a tag to a schema. Parts for lists, such as minItems, and the default describe the
// outermost list. Texts describe the whole. All others describe the values at the end. where is the place of the parts,
// for messages.
func describe(whole *schema, parts []part, where string) []error {
	var problems []error
	list, leaf := ends(whole)
	before := *leaf
	if hasKey(parts, "enum") {
		leaf.Enum, leaf.Description = nil, "" // of the type's constants
	}
	for i, p := range parts {
		k, ok := keywords[p.key]
		at := leaf
		switch {
		case ok && len(k.kinds) == 0:
			at = whole
		case list != nil && (slices.Contains(k.kinds, "array") || p.key == "default"):
			at = list
		}
		if p.key == "type" {
			continue // readType has read it
		}
		if p.key == "default" && list == nil && leaf != whole {
			problems = append(problems, newPartRefusal(parts[:i+1], whole.Type, where))
			continue
		}
		fits := ok && (len(k.kinds) == 0 || slices.Contains(k.kinds, at.Type) || at == list)
		if hasKey(parts[:i], p.key) && !slices.Contains(repeated, p.key) && at != list {
			problems = append(problems, &refusal{fmt.Sprintf("%q says %s again in the %s", p.text, p.key, where), `write it once, with a comma in a value as \\,`})
		} else if !fits || !p.hasValue {
			problems = append(problems, newPartRefusal(parts[:i+1], leaf.Type, where))
		} else if err := k.set(at, strings.ReplaceAll(p.value, `\,`, ",")); err != nil {
			problems = append(problems, newValueRefusal(p, where, err))
		}
	}
	if len(problems) == 0 {
		problems = slices.Concat(checkBounds(&before, list, where), checkBounds(&before, leaf, where))
	}
	if len(problems) == 0 {
		problems = checkValues(list, leaf, &before, hasKey(parts, "enum"))
	}
	leaf.Minimum = dropBound(leaf, leaf.Minimum, before.Minimum)
	leaf.Maximum = dropBound(leaf, leaf.Maximum, before.Maximum)
	return problems
}

func hasKey(parts []part, key string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.key == key })
}

// dropBound returns a bound of a schema. It returns "" for a bound of the Go type alone that is of
// no use: choices are stricter, and most clients count in float64, which does not hold the wide
// bounds.
func dropBound(s *schema, bound, ofType json.Number) json.Number {
	if bound == ofType && (s.Enum != nil || slices.Contains([]json.Number{minInt64, maxInt64, maxUint64, minFloat32, maxFloat32}, bound)) {
		return ""
	}
	return bound
}

// ends returns the outermost list of a schema, or nil, and the schema of its values at the end.
func ends(s *schema) (list, leaf *schema) {
	for {
		next := s.Items
		if s.Type == "object" && s.Properties == nil {
			next = s.AdditionalProperties
			for _, values := range s.PatternProperties {
				next = values
			}
		}
		if s.Type == "array" && list == nil {
			list = s
		}
		if next == nil {
			return list, s
		}
		s = next
	}
}

func newValueRefusal(p part, where string, err error) *refusal {
	return &refusal{fmt.Sprintf("the value of %q in the %s %s", p.text, where, err), asRefusal(err).hint}
}

// newPartRefusal refuses the last of the parts. The parts before it decide the hint.
func newPartRefusal(parts []part, kind, where string) *refusal {
	p := parts[len(parts)-1]
	hint := ""
	near, trimmed := nearestKeyword(p.key, kind), strings.TrimSpace(p.key)
	switch isFlag := slices.Contains(flagKeywords, trimmed); {
	case trimmed != p.key && (isKeyword(trimmed) || isFlag):
		hint = "remove the spaces around the comma"
	case isFlag && where == tagPlace:
		hint = "write " + p.key + " without a value, or leave it out"
	case isFlag:
		hint = "write it in the jsonschema tag of a field"
	case !p.hasValue && isKeyword(p.key):
		hint = writeKeyword(p.key)
	case isKeyword(p.key) && kind != "":
		hint = "it has no meaning on " + withArticle(kind)
	case isKeyword(p.key):
		hint = "it has no meaning on a field of this type"
	case !p.hasValue && followsEnum(parts):
		hint = "each choice has its own enum=: write enum=" + trimmed
	case !p.hasValue && hasKey(parts, "description"):
		hint = `escape a comma in a value as \\,`
	case !p.hasValue && strings.Contains(trimmed, " "):
		hint = "write description=" + trimmed
	case near != "":
		hint = fmt.Sprintf("did you mean %q?", near)
	case !p.hasValue && where == tagPlace:
		hint = `escape a comma in a value as \\,`
	}
	return &refusal{fmt.Sprintf("%q has no meaning in the %s", p.text, where), hint}
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

// checkValues refuses values in a tag that the Go type or the schema itself does not admit. If the
// tag has choices, they must be among the constants of the type, if there are any.
func checkValues(list, leaf, ofType *schema, tagged bool) (problems []error) {
	check := func(s *schema, what, choices string, values ...any) {
		if len(values) == 0 {
			return
		}
		compiled, err := toNode(s, nil).CompileSchema()
		if err != nil {
			problems = append(problems, err)
			return
		}
		for _, value := range values {
			text := fmt.Sprintf("the %s %s", what, toValue(value, nil).Spaced())
			if n, ok := value.(json.Number); ok && !isWithin(n, ofType) {
				problems = append(problems, beyondType(text, ofType))
			} else if s.Enum != nil && !slices.Contains(s.Enum, value) {
				known := toValue(s.Enum, nil).Spaced()
				problems = append(problems, &refusal{text + " is not one of the " + choices, "the " + choices + " are " + known[1:len(known)-1]})
			} else if fault := compiled.Refuse(toValue(value, nil)); fault != "" {
				problems = append(problems, &refusal{text + " is not valid: " + fault, ""})
			}
		}
	}
	if tagged {
		typed := *leaf
		typed.Enum = ofType.Enum
		check(&typed, "choice", "constants of the type", leaf.Enum...)
	}
	check(leaf, "example", "choices", leaf.Examples...)
	if leaf.Default != nil {
		check(leaf, "default", "choices", leaf.Default)
	}
	if list == nil || list.Default == nil {
		return problems
	}
	check(leaf, "default", "choices", list.Default.([]any)...)
	if len(problems) == 0 {
		check(list, "default", "", list.Default)
	}
	return problems
}
