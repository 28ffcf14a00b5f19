package diag

import (
	"go/token"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sourceCache holds the lines of source files. Each file is read once.
type sourceCache map[string][]string

// line returns the line at a position, or "" if there is none.
func (s sourceCache) line(pos token.Position) string {
	if pos.Filename == "" || pos.Line < 1 {
		return ""
	}
	lines, ok := s[pos.Filename]
	if !ok {
		// Some positions, such as $GOROOT in export data, have no readable source.
		if src, err := os.ReadFile(pos.Filename); err == nil {
			lines = strings.Split(string(src), "\n")
		}
		s[pos.Filename] = lines
	}
	if pos.Line > len(lines) {
		return ""
	}
	return strings.TrimRight(lines[pos.Line-1], " \t\r")
}

// IndexLines returns a file that converts the offsets of a text to positions. Columns count bytes.
func IndexLines(name string, text []byte) *token.File {
	// A line break at the end starts another line, which go/token counts only if something follows.
	file := token.NewFileSet().AddFile(name, -1, len(text)+1)
	file.SetLinesForContent(append(slices.Clip(text), '\n'))
	return file
}

// maxListing is the maximum number of characters in a listing. Up to half of them come before the
// caret.
const maxListing = 96

// renderListing returns the source line with a caret below column, which counts bytes from 1.
func renderListing(source string, column int) string {
	start := len(source) - len(strings.TrimLeft(source, " \t"))
	at := column - 1
	if column < 1 || at > len(source) || source == "" {
		return ""
	}
	at = max(at, start)
	// Only the part near the position matters if a line has megabytes.
	start = max(start, at-utf8.UTFMax*maxListing)
	end := min(len(source), at+utf8.UTFMax*maxListing)
	before, after := []rune(source[start:at]), []rune(source[at:end])
	if near := source[start:end]; !utf8.ValidString(near) {
		before, after = []rune(strings.ToValidUTF8(source[start:at], "?")), []rune(strings.ToValidUTF8(source[at:end], "?"))
	}
	if len(before)+len(after) > maxListing {
		if len(before) > maxListing/2 {
			before = append([]rune("..."), before[len(before)-maxListing/2:]...)
		}
		if room := maxListing - len(before); len(after) > room {
			after = append(after[:room:room], []rune("...")...)
		}
	}
	indent := make([]rune, len(before))
	for i, r := range before {
		indent[i] = ' '
		if r == '\t' {
			indent[i] = r
		}
	}
	return "\n\t" + replaceUnprintable(before) + replaceUnprintable(after) + "\n\t" + string(indent) + "^"
}

// replaceUnprintable replaces control characters, which a terminal would obey. A broken source may
// contain any.
func replaceUnprintable(text []rune) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return '?'
	}, string(text))
}

// maxMessage is the maximum number of characters of a message or hint.
const maxMessage = 1000

// cleanMessage makes a message printable on one line, because it may quote the source.
func cleanMessage(text string) string {
	if utf8.ValidString(text) && len(text) <= maxMessage && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	runes := []rune(strings.ToValidUTF8(text, "?"))
	if len(runes) > maxMessage {
		const gap = " ... "
		half := (maxMessage - len(gap)) / 2
		runes = slices.Concat(runes[:half], []rune(gap), runes[len(runes)-half:])
	}
	return strings.TrimSpace(strings.ReplaceAll(replaceUnprintable(runes), "\t", " "))
}
