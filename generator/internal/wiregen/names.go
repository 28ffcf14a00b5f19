package main

import (
	"strings"
	"unicode"
)

// initialisms are the words that Go writes in capitals.
var initialisms = map[string]string{"id": "ID", "ids": "IDs", "ttl": "TTL", "uri": "URI", "sep": "SEP", "rc": "RC"}

// goName makes an exported Go name of a name on the wire: taskId is TaskID,
// input_required is InputRequired, tasks/get is TasksGet, and a key with a
// domain in front counts from its last slash.
func goName(wire string) string {
	if i := strings.LastIndex(wire, "/"); i >= 0 && strings.Contains(wire[:i], ".") {
		wire = wire[i+1:]
	}
	var name strings.Builder
	for _, word := range words(wire) {
		if upper, ok := initialisms[strings.ToLower(word)]; ok {
			name.WriteString(upper)
			continue
		}
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// words splits at every character that is no letter or digit, and before
// every capital that follows a small letter.
func words(text string) []string {
	var out []string
	start := true
	for i, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			start = true
			continue
		}
		if start || unicode.IsUpper(r) && !unicode.IsUpper(rune(text[i-1])) {
			out = append(out, "")
			start = false
		}
		out[len(out)-1] += string(r)
	}
	return out
}

// wirePackage is the name of a revision's package.
func wirePackage(revision string) string { return "wire" + strings.ReplaceAll(revision, "-", "") }

// revisionName is a revision in a Go name: 20251125, 20251125RC, SEP1686, TaskPatterns.
func revisionName(revision string) string { return goName(revision) }

// methodName is the constant of a method or notification.
func methodName(wire string) string {
	if rest, ok := strings.CutPrefix(wire, "notifications/"); ok {
		return "Notification" + goName(rest)
	}
	return "Method" + goName(wire)
}

// docAfter puts a sentence that begins with its verb after a name.
func docAfter(name, sentence string) string {
	if sentence == "" {
		return name
	}
	return name + " " + strings.ToLower(sentence[:1]) + sentence[1:]
}

// wrap breaks a comment into lines of at most 97 columns, the marker and the
// indentation (tabs, four columns each) included.
func wrap(text string, tabs int) []string {
	width := 97 - len("// ") - 4*tabs
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
