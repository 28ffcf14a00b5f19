package directive

import (
	"regexp"
	"strings"
)

// looksLike is a comment's line that a person meant as a directive: mcptask:word, in any case, with
// any spaces around.
var looksLike = regexp.MustCompile(`(?i)^[ \t*]*mcptask[ \t]*:([ \t]*)([a-z]*)`)

// Is tells whether the text of a comment is a directive that the scanner reads.
func Is(text string) bool {
	rest, ok := strings.CutPrefix(text, Prefix)
	return ok && rest != "" && !strings.ContainsAny(rest[:1], " \t\r")
}

// Stray is a comment that was meant as a directive.
type Stray struct {
	Offset  int    // in bytes, of the mistake in the comment
	Kind    string // the word after the colon, in small letters; empty where there is none
	Problem string
}

// Meant tells whether a comment that is no directive was meant as one. Prose that happens to start
// with "mcptask: " is left alone.
func Meant(text string) (Stray, bool) {
	if Is(text) {
		return Stray{}, false
	}
	block := strings.HasPrefix(text, "/*")
	for start := 2; start < len(text); {
		line, _, more := strings.Cut(text[start:], "\n")
		match := looksLike.FindStringSubmatch(line)
		if match != nil && (match[1] == "" && match[2] != "" || known(match[2]) || strings.TrimRight(text, " \t\r") == Prefix) {
			return Stray{
				Offset: start + strings.Index(strings.ToLower(line), "mcptask"),
				Kind:   strings.ToLower(match[2]), Problem: flaw(block, line),
			}, true
		}
		if !more {
			break
		}
		start += len(line) + 1
	}
	return Stray{}, false
}

func known(word string) bool {
	for _, kind := range Kinds {
		if strings.EqualFold(word, kind) {
			return true
		}
	}
	return false
}

func flaw(block bool, line string) string {
	switch {
	case block:
		return "a directive is a line comment, not a block comment"
	case strings.TrimSpace(line) == "mcptask:":
		return "a directive names what it is: service, tool or input"
	case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
		return "a directive has no space after //"
	case !strings.HasPrefix(strings.ToLower(line), "mcptask:") || strings.HasPrefix(strings.ToLower(line), "mcptask: "):
		return "a directive has no space around the colon"
	}
	return "a directive is written in small letters"
}
