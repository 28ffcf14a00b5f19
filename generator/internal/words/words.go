// Package words formats text for people: lists, durations, sentences and quoted values.
package words

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
)

// Join joins words for a sentence: "a", "a and b", "a, b and c".
func Join(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// UpperFirst puts the first letter of a text in upper case.
func UpperFirst(text string) string {
	runes := []rune(text)
	if len(runes) > 0 {
		runes[0] = unicode.ToUpper(runes[0])
	}
	return string(runes)
}

// AfterName returns a sentence that starts with a verb, as a doc comment of name.
func AfterName(name, sentence string) string {
	if sentence == "" {
		return name
	}
	return name + " " + strings.ToLower(sentence[:1]) + sentence[1:]
}

// Duration formats a duration as people write it: 24h, not 24h0m0s.
func Duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// QuoteJSON encodes a JSON string without HTML escapes.
func QuoteJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string always encodes
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// FitsTag reports whether encoding/json accepts the name of a property in a struct tag.
func FitsTag(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
