// Package text prepares text from outside for messages and logs.
package text

import "strings"

// Shorten returns s if it has at most the given number of bytes. Otherwise it returns the
// beginning of s, as valid UTF-8, and an ellipsis.
func Shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
