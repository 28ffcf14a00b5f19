package main

import (
	"strings"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// initialisms are the words that Go writes in capitals.
var initialisms = map[string]string{"id": "ID", "ids": "IDs", "ttl": "TTL", "uri": "URI", "sep": "SEP", "rc": "RC"}

// goName turns a name on the wire into an exported Go name: taskId becomes TaskID, input_required
// becomes InputRequired and tasks/get becomes TasksGet. For a key with a domain, it uses the part
// after the last slash.
func goName(wire string) string {
	if i := strings.LastIndex(wire, "/"); i >= 0 && strings.Contains(wire[:i], ".") {
		wire = wire[i+1:]
	}
	var name strings.Builder
	for _, word := range splitWords(wire) {
		if upper, ok := initialisms[strings.ToLower(word)]; ok {
			name.WriteString(upper)
			continue
		}
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// splitWords splits at every character that is not a letter or digit, and before every capital that
// follows a lowercase letter.
func splitWords(text string) []string {
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

// wirePackage names the package of a revision.
func wirePackage(revision string) string { return "wire" + strings.ReplaceAll(revision, "-", "") }

// wireDirectory returns the directory of a revision's package, below the runtime's. A revision that was
// never released has it apart.
func wireDirectory(surface *schema.Surface) string {
	directory := "internal/protocol/"
	if !isReleased(surface) {
		directory += "unofficial/"
	}
	return directory + wirePackage(surface.Revision)
}

// methodName names the constant of a method or notification.
func methodName(wire string) string {
	if rest, ok := strings.CutPrefix(wire, "notifications/"); ok {
		return "Notification" + goName(rest)
	}
	return "Method" + goName(wire)
}

// wrapComment returns the lines of a comment, wrapped to 97 columns.
func wrapComment(text string) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= 97 {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, "// "+word)
	}
	return lines
}
