package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// keywords has every keyword but those of a struct (see groupKeywords).
var keywords = map[string]keyword{
	"title":            {nil, text(func(s *schema) *string { return &s.Title })},
	"description":      {nil, text(func(s *schema) *string { return &s.Description })},
	"anchor":           {nil, text(func(s *schema) *string { return &s.Anchor })},
	"type":             {nil, setType},
	"oneof_type":       {nil, alternatives(func(s *schema) *[]*schema { return &s.OneOf }, ofType)},
	"anyof_type":       {nil, alternatives(func(s *schema) *[]*schema { return &s.AnyOf }, ofType)},
	"oneof_ref":        {nil, alternatives(func(s *schema) *[]*schema { return &s.OneOf }, ofRef)},
	"anyof_ref":        {nil, alternatives(func(s *schema) *[]*schema { return &s.AnyOf }, ofRef)},
	"format":           {strs, text(func(s *schema) *string { return &s.Format })},
	"minLength":        {strs, count(func(s *schema) **uint64 { return &s.MinLength })},
	"maxLength":        {strs, count(func(s *schema) **uint64 { return &s.MaxLength })},
	"pattern":          {strs, setPattern},
	"readOnly":         {strs, boolean(func(s *schema) *bool { return &s.ReadOnly })},
	"writeOnly":        {strs, boolean(func(s *schema) *bool { return &s.WriteOnly })},
	"minimum":          {numbers, number(func(s *schema) *json.Number { return &s.Minimum })},
	"maximum":          {numbers, number(func(s *schema) *json.Number { return &s.Maximum })},
	"exclusiveMinimum": {numbers, number(func(s *schema) *json.Number { return &s.ExclusiveMinimum })},
	"exclusiveMaximum": {numbers, number(func(s *schema) *json.Number { return &s.ExclusiveMaximum })},
	"multipleOf":       {numbers, setMultipleOf},
	"minItems":         {arrays, count(func(s *schema) **uint64 { return &s.MinItems })},
	"maxItems":         {arrays, count(func(s *schema) **uint64 { return &s.MaxItems })},
	"uniqueItems":      {arrays, setUniqueItems},
	"enum":             {chosen, setChoice},
	"example":          {chosen, setExample},
	"default":          {scalars, setDefault},
}

func text(field func(*schema) *string) func(*schema, string) error {
	return func(s *schema, value string) error {
		if *field(s) = value; value == "" {
			return errors.New("has no value")
		}
		return nil
	}
}

func count(field func(*schema) **uint64) func(*schema, string) error {
	return func(s *schema, value string) error {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return errors.New("is not a whole number")
		}
		*field(s) = &n
		return nil
	}
}

func boolean(field func(*schema) *bool) func(*schema, string) error {
	return func(s *schema, value string) error {
		v, err := readBool(value)
		*field(s) = v
		return err
	}
}

func readBool(value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, errors.New("is neither true nor false")
	}
	return value == "true", nil
}

func number(field func(*schema) *json.Number) func(*schema, string) error {
	return func(s *schema, value string) (err error) {
		*field(s), err = readNumber(value)
		return err
	}
}

// readNumber checks a number. A float64 must hold it, as most clients count in this type.
func readNumber(value string) (json.Number, error) {
	if !json.Valid([]byte(value)) || strings.Trim(value, "+-0123456789.eE") != "" {
		return "", errors.New("is not a number")
	}
	switch f, err := strconv.ParseFloat(value, 64); {
	case err != nil:
		return "", errors.New("is too large for a number")
	case f == 0 && strings.ContainsAny(mantissa(value), "123456789"):
		return "", errors.New("is too close to zero for a number")
	}
	return json.Number(value), nil
}

func mantissa(number string) string {
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	return digits
}

func setMultipleOf(s *schema, value string) (err error) {
	if s.MultipleOf, err = readNumber(value); err == nil && rational(s.MultipleOf).Sign() <= 0 {
		return errors.New("is not greater than 0")
	}
	return err
}

func setUniqueItems(s *schema, value string) error {
	if value != "true" {
		return errors.New("is not true")
	}
	s.UniqueItems = true
	return nil
}

func setPattern(s *schema, value string) error {
	s.Pattern = value
	return checkPattern(value)
}

// setChoice adds a choice. The choices are all the values, so the bounds of the Go type are dropped.
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
func setDefault(s *schema, value string) error {
	if s.Type != "array" {
		v, err := readValue(s.Type, value)
		s.Default = v
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

var jsonTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

func ofType(name string) (*schema, error) {
	if !slices.Contains(jsonTypes, name) {
		return nil, errors.New("is not a JSON type")
	}
	return &schema{Type: name}, nil
}

func ofRef(name string) (*schema, error) {
	if name == "" {
		return nil, errors.New("has no value")
	}
	return &schema{Ref: name}, nil
}

func setType(s *schema, value string) error {
	t, err := ofType(value)
	if err != nil {
		return err
	}
	if s.Type = t.Type; s.Type == "array" {
		s.Items = &schema{}
	}
	return nil
}

// alternatives reads names that are separated by semicolons.
func alternatives(field func(*schema) *[]*schema, read func(string) (*schema, error)) func(*schema, string) error {
	return func(s *schema, value string) error {
		for name := range strings.SplitSeq(value, ";") {
			alternative, err := read(name)
			if err != nil {
				return err
			}
			*field(s) = append(*field(s), alternative)
		}
		return nil
	}
}

// typeKeywords say what a value is, in place of its Go type.
var typeKeywords = []string{"type", "oneof_type", "anyof_type", "oneof_ref", "anyof_ref"}

// groupKeywords put a field into a group of which all must be there: groups of fields of which
// one (oneof) or some (anyof) must be given.
var groupKeywords = map[string]func(*schema) *[]*schema{
	"oneof_required": func(s *schema) *[]*schema { return &s.OneOf },
	"anyof_required": func(s *schema) *[]*schema { return &s.AnyOf },
}

// flagKeywords have no value.
var flagKeywords = []string{"required", "nullable"}

// isKeyword reports whether a name is a keyword with a value.
func isKeyword(name string) bool {
	return keywords[name].set != nil || groupKeywords[name] != nil
}

// part is one part of a tag in the style of invopop: required, or key=value.
type part struct {
	text, key, value string
	hasValue         bool
}

// describe has parts describe a schema. Those of a list, such as minItems, and the default describe
// the outermost list, texts describe the whole, and all others the values at the end. where says
// where the parts are, for messages.
func describe(whole *schema, parts []part, where string) []error {
	var problems []error
	list, leaf := ends(whole)
	before := *leaf
	tagged := slices.ContainsFunc(parts, func(p part) bool { return p.key == "enum" })
	if tagged {
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
		if slices.Contains(typeKeywords, p.key) {
			continue // readType has read it
		}
		fits := ok && (len(k.kinds) == 0 || slices.Contains(k.kinds, at.Type) || at == list)
		if !fits || !p.hasValue {
			problems = append(problems, newPartRefusal(parts[:i+1], leaf.Type, where))
			continue
		}
		if err := k.set(at, strings.ReplaceAll(p.value, `\,`, ",")); err != nil {
			problems = append(problems, newValueRefusal(p, where, err))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	if list != nil {
		problems = append(problems, checkBounds(nil, list, where)...)
	}
	problems = append(problems, checkBounds(&before, leaf, where)...)
	if len(problems) > 0 {
		return problems
	}
	if leaf.Enum != nil && leaf.Minimum == before.Minimum && leaf.Maximum == before.Maximum {
		defer func() { leaf.Minimum, leaf.Maximum = "", "" }() // the choices say more than the Go type
	}
	return checkValues(list, leaf, tagged, before.Enum)
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
	r := &refusal{}
	if !errors.As(err, &r) {
		r = &refusal{message: err.Error()}
	}
	return &refusal{fmt.Sprintf("the value of %q in the %s %s", p.text, where, r.message), r.hint}
}

// newPartRefusal refuses the last of the parts. The parts before it decide the hint.
func newPartRefusal(parts []part, kind, where string) *refusal {
	p := parts[len(parts)-1]
	var names []string
	for name, k := range keywords {
		if len(k.kinds) == 0 || slices.Contains(k.kinds, kind) || kind == "" {
			names = append(names, name)
		}
	}
	names = slices.Concat(names, flagKeywords, slices.Collect(maps.Keys(groupKeywords)))
	slices.Sort(names)
	hint := ""
	if near := diag.Nearest(p.key, names); near != "" && near != p.key {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	switch trimmed := strings.TrimSpace(p.key); {
	case trimmed != p.key && (isKeyword(trimmed) || slices.Contains(flagKeywords, trimmed)):
		hint = "remove the spaces around the comma"
	case !p.hasValue && isKeyword(p.key):
		hint = "write " + p.key + "=value"
	case !p.hasValue && followsEnum(parts):
		hint = "each choice has its own enum=: write enum=" + trimmed
	case !p.hasValue && strings.Contains(trimmed, " "):
		hint = "write description=" + trimmed
	case !p.hasValue && hint == "":
		hint = `escape a comma in a value as \\,`
	case isKeyword(p.key) && kind != "":
		hint = "it has no meaning on " + withArticle(kind)
	case isKeyword(p.key):
		hint = "it has no meaning on a field of this type"
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

// checkBounds refuses bounds that exclude every value, or that go beyond those of the Go type.
func checkBounds(before, s *schema, where string) []error {
	type bound struct {
		name  string
		value json.Number
	}
	length := func(n *uint64) json.Number {
		if n == nil {
			return ""
		}
		return json.Number(strconv.FormatUint(*n, 10))
	}
	low := []bound{{"minimum", s.Minimum}, {"exclusiveMinimum", s.ExclusiveMinimum}, {"minLength", length(s.MinLength)}, {"minItems", length(s.MinItems)}}
	high := []bound{{"maximum", s.Maximum}, {"exclusiveMaximum", s.ExclusiveMaximum}, {"maxLength", length(s.MaxLength)}, {"maxItems", length(s.MaxItems)}}
	var problems []error
	for _, b := range slices.Concat(low[:2], high[:2]) {
		if before == nil || b.value == "" || isWithin(b.value, before) {
			continue
		}
		values := "at least " + before.Minimum.String()
		if before.Maximum != "" {
			values = before.Minimum.String() + " to " + before.Maximum.String()
		}
		problems = append(problems, &refusal{fmt.Sprintf("%q in the %s is not a value of the Go type", b.name+"="+b.value.String(), where), "its values are " + values})
	}
	if len(problems) > 0 {
		return problems
	}
	for i, l := range low {
		for j, h := range high {
			if i != j && (i > 1 || j > 1) || l.value == "" || h.value == "" { // the two of numbers limit each other
				continue
			}
			order := rational(l.value).Cmp(rational(h.value))
			if order > 0 || order == 0 && (i == 1 || j == 1) {
				problems = append(problems, &refusal{fmt.Sprintf("%q and %q in the %s allow no value",
					l.name+"="+l.value.String(), h.name+"="+h.value.String(), where), ""})
			}
		}
	}
	return problems
}

func isWithin(n json.Number, s *schema) bool {
	return (s.Minimum == "" || rational(n).Cmp(rational(s.Minimum)) >= 0) && (s.Maximum == "" || rational(n).Cmp(rational(s.Maximum)) <= 0)
}

// rational returns the value of a number that readNumber has checked.
func rational(n json.Number) *big.Rat {
	r, _ := new(big.Rat).SetString(n.String())
	return r
}

// checkValues refuses values in a tag that the schema itself does not admit. If the tag has choices,
// they must be among the constants of the type, if there are any.
func checkValues(list, leaf *schema, tagged bool, constants []any) []error {
	var problems []error
	check := func(s *schema, what, choices string, values []any) {
		if len(values) == 0 {
			return
		}
		compiled, err := compile(toNode(s, nil))
		if err != nil {
			problems = append(problems, err)
			return
		}
		for _, value := range values {
			r := &refusal{message: fmt.Sprintf("the %s %s is not ", what, toValue(value, nil).Spaced())}
			if s.Enum != nil && !slices.Contains(s.Enum, value) {
				problems = append(problems, &refusal{r.message + "one of the " + choices, "the " + choices + " are " + strings.Join(choiceTexts(s), ", ")})
			} else if fault := findFault(compiled, value); fault != "" {
				problems = append(problems, &refusal{r.message + "valid: " + fault, ""})
			}
		}
	}
	if tagged {
		typed := *leaf
		typed.Enum = constants
		check(&typed, "choice", "constants of the type", leaf.Enum)
	}
	check(leaf, "example", "choices", leaf.Examples)
	if leaf.Default != nil {
		check(leaf, "default", "choices", []any{leaf.Default})
	}
	if list == nil || list.Default == nil {
		return problems
	}
	check(leaf, "default", "choices", list.Default.([]any))
	if len(problems) == 0 {
		check(list, "default", "", []any{list.Default})
	}
	return problems
}

func choiceTexts(s *schema) []string {
	names := make([]string, len(s.Enum))
	for i, value := range s.Enum {
		names[i] = toValue(value, nil).Spaced()
	}
	return names
}
