package declaration

import (
	"regexp"
	"unicode"
)

// toolName is what MCP allows as the name of a tool.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// snake turns the name of a method into that of a tool: HTTPServerURL is http_server_url and
// ListURLs is list_urls.
func snake(name string) string {
	runes := []rune(name)
	var out []rune
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && runes[i-1] != '_' && startsWord(runes, i) {
			out = append(out, '_')
		}
		out = append(out, unicode.ToLower(r))
	}
	return string(out)
}

// startsWord tells whether the capital at i starts a word: after a small letter or a digit, or as
// the last of several capitals, unless only a plural s follows.
func startsWord(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i-1]) {
		return true
	}
	if i+1 >= len(runes) || !unicode.IsLower(runes[i+1]) {
		return false
	}
	plural := runes[i+1] == 's' && (i+2 == len(runes) || !unicode.IsLower(runes[i+2]))
	return !plural
}
