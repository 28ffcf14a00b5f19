package jsonschema

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// tag is the parsed jsonschema tag of a field.
type tag struct {
	required, nullable bool
	description        string  // the whole tag, in the style of the Go SDK
	leaf               *schema // the type that the tag gives; nil if it gives none
	parts              []part
}

// tagPlace is the place of the parts of a tag, for messages.
const tagPlace = "jsonschema tag"

// readTag parses the jsonschema tag of a field.
func readTag(st reflect.StructTag) (t tag, err error) {
	text, ok := st.Lookup("jsonschema")
	_, extras := st.Lookup("jsonschema_extras")
	switch {
	case extras:
		return t, &refusal{"jsonschema_extras has no meaning", "remove it, or write the schema by hand"}
	case !ok:
		return t, checkIsRead(st, "jsonschema")
	case text == "-":
		return t, &refusal{`jsonschema:"-" leaves a field out of the schema that encoding/json still writes, so clients refuse their own calls`, `write json:"-"`}
	}
	words := splitParts(text)
	if first := words[0]; !keyStart.MatchString(first) && !slices.Contains(flagKeywords, first) {
		t.description = text
		return t, checkDescription(text, words)
	}
	cut := "" // the pattern that commas divide, in one piece
	for _, word := range words {
		p := part{text: word}
		p.key, p.value, p.hasValue = strings.Cut(word, "=")
		last := len(t.parts) - 1
		switch {
		case last >= 0 && t.parts[last].key == "pattern" && !keyStart.MatchString(word) && nearestKeyword(strings.TrimSpace(p.key), "") == "":
			cut = cmp.Or(cut, t.parts[last].text) + `\,` + word
		case p.key == "required" && !p.hasValue:
			t.required = true
		case p.key == "nullable" && !p.hasValue:
			t.nullable = true
		default:
			t.parts = append(t.parts, p)
		}
	}
	if cut != "" {
		return t, &refusal{"a comma ends the pattern in the " + tagPlace, "if it belongs to the pattern, write " + strconv.Quote(cut)}
	}
	t.leaf, err = readType(t.parts, tagPlace)
	return t, err
}

// keyStart matches the start of a tag in the style of invopop.
var keyStart = regexp.MustCompile(`^[A-Za-z_]\w*=`)

// checkDescription refuses a description that mixes both styles, or that is a keyword.
func checkDescription(text string, words []string) error {
	if strings.TrimSpace(text) == "" {
		return &refusal{"the " + tagPlace + " is empty", "remove it"}
	}
	for i, word := range words {
		key, _, hasValue := strings.Cut(strings.TrimSpace(word), "=")
		mixes := hasValue && isKeyword(key) || !hasValue && slices.Contains(flagKeywords, key) && i > 0
		switch {
		case isKeyword(words[0]) && (mixes || len(words) == 1):
			return &refusal{fmt.Sprintf("%q has no meaning in the %s", words[0], tagPlace), writeKeyword(words[0])}
		case mixes:
			return &refusal{fmt.Sprintf("%q has no meaning in a %s that starts with a description", strings.TrimSpace(word), tagPlace), "start the tag with description="}
		}
	}
	if hint := diag.DidYouMean(text, flagKeywords); hint != "" {
		return &refusal{fmt.Sprintf("%q has no meaning in the %s", text, tagPlace), hint}
	}
	return nil
}

// readType returns the type that the parts give, or nil.
func readType(parts []part, where string) (leaf *schema, err error) {
	for _, p := range parts {
		if p.key != "type" || !p.hasValue {
			continue
		}
		if leaf == nil {
			leaf = &schema{}
		}
		if err := keywords[p.key].set(leaf, p.value); err != nil {
			return nil, newValueRefusal(p, where, err)
		}
		if leaf.Type == "array" {
			leaf.Items = &schema{}
		}
	}
	return leaf, nil
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
