package diag

import (
	"go/token"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sources are the lines of the files that problems stand in, each file read once.
type sources map[string][]string

// line returns the line of a position; empty where there is none.
func (s sources) line(pos token.Position) string {
	if pos.Filename == "" || pos.Line < 1 {
		return ""
	}
	lines, ok := s[pos.Filename]
	if !ok {
		// What cannot be read, such as export data's $GOROOT, is shown without its source.
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

// shown is how many characters of a line a listing has at most; before the caret, half of them.
const shown = 96

// listing is the line with a caret below its column, which counts bytes from 1.
func listing(source string, column int) string {
	start := len(source) - len(strings.TrimLeft(source, " \t"))
	at := column - 1
	if column < 1 || at > len(source) || source == "" {
		return ""
	}
	at = max(at, start)
	// Of a line of megabytes only what is near is looked at.
	start = max(start, at-utf8.UTFMax*shown)
	end := min(len(source), at+utf8.UTFMax*shown)
	before, after := []rune(source[start:at]), []rune(source[at:end])
	if near := source[start:end]; !utf8.ValidString(near) {
		before, after = []rune(strings.ToValidUTF8(source[start:at], "?")), []rune(strings.ToValidUTF8(source[at:end], "?"))
	}
	if len(before)+len(after) > shown {
		if len(before) > shown/2 {
			before = append([]rune("..."), before[len(before)-shown/2:]...)
		}
		if room := shown - len(before); len(after) > room {
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
	return "\n\t" + printable(before) + printable(after) + "\n\t" + string(indent) + "^"
}

// printable keeps characters that a terminal does not show but obeys, of which a broken source may have
// any, from it.
func printable(text []rune) string {
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

// longest is how many characters of a message or a hint are shown at most.
const longest = 1000

// clean makes a message of one line that a terminal can show: it may quote what the source says.
func clean(text string) string {
	if utf8.ValidString(text) && len(text) <= longest && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	runes := []rune(strings.ToValidUTF8(text, "?"))
	if len(runes) > longest {
		const gap = " ... "
		half := (longest - len(gap)) / 2
		runes = slices.Concat(runes[:half], []rune(gap), runes[len(runes)-half:])
	}
	return strings.TrimSpace(strings.ReplaceAll(printable(runes), "\t", " "))
}
