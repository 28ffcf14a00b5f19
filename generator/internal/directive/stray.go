package directive

import (
	"regexp"
	"strings"
)

// strayPattern matches a comment line that was probably meant as a directive: mcptask:word in any
// case, with any spaces.
var strayPattern = regexp.MustCompile(`(?i)^[ \t*]*mcptask[ \t]*:([ \t]*)([a-z]*)`)

// IsDirective reports whether a comment is a directive that [Scan] can read.
func IsDirective(text string) bool {
	rest, ok := strings.CutPrefix(text, Prefix)
	return ok && rest != "" && !strings.ContainsAny(rest[:1], " \t\r")
}

// Stray is a comment that was probably meant as a directive.
type Stray struct {
	Offset  int    // of the mistake, in bytes from the start of the comment
	Kind    string // the word after the colon in lower case; may be empty
	Problem string
}

// FindStray reports whether a comment was meant as a directive but is not one. It ignores prose
// that happens to start with "mcptask: ".
func FindStray(text string) (Stray, bool) {
	if IsDirective(text) {
		return Stray{}, false
	}
	block := strings.HasPrefix(text, "/*")
	for start := 2; start < len(text); {
		line, _, more := strings.Cut(text[start:], "\n")
		match := strayPattern.FindStringSubmatch(line)
		if match != nil && (match[1] == "" && match[2] != "" || isKind(match[2]) || strings.TrimRight(text, " \t\r") == Prefix) {
			return Stray{
				Offset: start + strings.Index(strings.ToLower(line), "mcptask"),
				Kind:   strings.ToLower(match[2]), Problem: describeFlaw(block, line),
			}, true
		}
		if !more {
			break
		}
		start += len(line) + 1
	}
	return Stray{}, false
}

func isKind(word string) bool {
	for _, kind := range Kinds {
		if strings.EqualFold(word, kind) {
			return true
		}
	}
	return false
}

func describeFlaw(block bool, line string) string {
	switch {
	case block:
		return "a directive is a line comment, not a block comment"
	case strings.TrimSpace(line) == "mcptask:":
		return "a directive needs a kind, such as service, tool or input"
	case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
		return "a directive must not have a space after //"
	case !strings.HasPrefix(strings.ToLower(line), "mcptask:") || strings.HasPrefix(strings.ToLower(line), "mcptask: "):
		return "a directive must not have a space around the colon"
	}
	return "a directive must be in lower case"
}
