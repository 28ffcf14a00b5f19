package terminal

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
)

// formats has words and an example for each format of text that people meet.
var formats = map[string]struct{ words, example string }{
	"date":      {"a date", "2026-01-31"},
	"date-time": {"a time", "2026-01-31T15:04:05Z"},
	"time":      {"a time of day", "15:04:05Z"},
	"duration":  {"a duration", "PT1H30M"},
	"email":     {"an e-mail address", "ann@example.com"},
	"uri":       {"a URL", "https://example.com"},
	"uuid":      {"a UUID", "7d444840-9dc0-11d1-b245-5ffdce74fad2"},
}

// maxLists bounds how many lists within one another are described. One may refer to itself.
const maxLists = 4

// describe describes in words the values that a schema allows. lists is the number of lists that may be nested.
func (s schema) describe(lists int) string {
	const most = 20
	m := s.members()
	values, kinds := s.values(), s.kinds()
	if m["properties"] != nil && len(kinds) == 0 {
		kinds = []string{"object"}
	}
	switch {
	case len(values) > most:
		return strings.Join(values[:most], " or ") + " or …"
	case len(values) > 0:
		return strings.Join(values, " or ")
	}
	var words []string
	for _, kind := range kinds {
		word := ""
		switch kind {
		case "string":
			word = s.describeText()
		case "integer":
			word = "a whole number" + s.describeRange()
		case "number":
			word = "a number" + s.describeRange()
		case "boolean":
			word = "true or false"
		case "null":
			word = "null"
		case "object":
			word = "an object"
			if each, ok := m["additionalProperties"].(map[string]any); ok && lists > 1 {
				word += ", each value " + schema{s.root, each}.describe(lists-1)
			}
		case "array":
			word = "a list" + form.FormatRange(s.count("minItems"), s.count("maxItems"), " of ", "")
			if items, ok := m["items"]; ok && lists > 1 {
				word += ", each " + schema{s.root, items}.describe(lists-1)
			}
		}
		if word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return cmp.Or(strings.Join(words, " or "), "any JSON")
}

// describeText describes in words the texts that a schema allows.
func (s schema) describeText() string {
	m := s.members()
	format, _ := m["format"].(string)
	pattern, _ := m["pattern"].(string)
	known := formats[format]
	words := cmp.Or(known.words, "text")
	if least, most := s.count("minLength"), s.count("maxLength"); least == 1 && most == 0 {
		words += ", not empty"
	} else {
		words += form.FormatRange(least, most, " of ", " characters")
	}
	switch {
	case known.example != "":
		words += " such as " + known.example
	case format != "":
		words += " of the format " + format
	case pattern != "":
		words += " that matches " + shorten(pattern, maxDefault)
	}
	return words
}

// count returns the value of a keyword that bounds a number of things, or 0.
func (s schema) count(keyword string) int64 {
	bound, _ := s.members()[keyword].(float64)
	return int64(min(max(bound, 0), 1<<53))
}

// describeRange describes the bounds of a number, after a blank. It returns "" if there are none.
func (s schema) describeRange() string {
	words := ""
	for _, bound := range []struct{ keyword, word string }{
		{"minimum", "from"}, {"exclusiveMinimum", "above"}, {"maximum", "to"}, {"exclusiveMaximum", "below"}, {"multipleOf", "in steps of"},
	} {
		if value, ok := s.members()[bound.keyword].(float64); ok {
			words += " " + bound.word + " " + strconv.FormatFloat(value, 'g', -1, 64)
		}
	}
	if rest, ok := strings.CutPrefix(words, " to "); ok {
		return " up to " + rest
	}
	return words
}
