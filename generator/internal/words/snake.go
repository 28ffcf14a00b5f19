package words

import "unicode"

// SnakeCase turns a Go name into a name for callers: HTTPServerURL becomes http_server_url and ListURLs
// becomes list_urls.
func SnakeCase(name string) string {
	runes := []rune(name)
	var out []rune
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && runes[i-1] != '_' && StartsWord(runes, i) {
			out = append(out, '_')
		}
		out = append(out, unicode.ToLower(r))
	}
	return string(out)
}

// StartsWord reports whether the capital at index i starts a word. It does if it follows a
// lowercase letter or a digit, or if it is the last of several capitals and more than a plural s
// follows.
func StartsWord(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i-1]) {
		return true
	}
	if i+1 >= len(runes) || !unicode.IsLower(runes[i+1]) {
		return false
	}
	plural := runes[i+1] == 's' && (i+2 == len(runes) || !unicode.IsLower(runes[i+2]))
	return !plural
}
