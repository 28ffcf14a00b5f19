package terminal

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// maxMarks bounds how many combining marks follow each other. A pile of them would cover other lines.
const maxMarks = 8

// sequences matches escape sequences. Each may begin with ESC and a letter, or with one character of C1. The first
// alternative matches sequences that end in a letter, and the second strings such as the title of the window. The
// others match the remaining escapes, such as the beginning of a sequence that does not end.
var sequences = regexp.MustCompile(`(?:\x1b\[|\x{9b})[ -?]*[@-~]|` +
	`(?:\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])[^\x00-\x1f\x{80}-\x{9f}]*(?:\x07|\x1b\\|\x{9c})|` +
	`\x1b[ -/]+[0-~]|\x1b[ -~]`)

// Printable returns the text of a server without characters that could drive a terminal or deceive its reader: control
// characters, escape sequences, marks that change the direction of text, and characters that cannot be seen. Bytes that
// are not UTF-8 become U+FFFD. If keepLines is true, ends of lines stay and become "\n". Otherwise they become spaces,
// and so does a tab.
func Printable(s string, keepLines bool) string {
	s = sequences.ReplaceAllString(strings.ToValidUTF8(s, "\ufffd"), "")
	lineEnd := ' '
	if keepLines {
		lineEnd = '\n'
	}
	marks := 0
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			r = ' '
		case strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r): // here a terminal, or a program behind it, may begin a line
			r = lineEnd
		case unicode.In(r, unicode.Cc, unicode.Cf) && r != '\u200c' && r != '\u200d': // scripts and emoji need joiners
			return -1
		}
		if !unicode.In(r, unicode.Mn, unicode.Me) {
			marks = 0
		} else if marks++; marks > maxMarks {
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// brief returns at most the given number of bytes of a server's text, in one line.
func brief(s string, most int) string { return strings.TrimSpace(Printable(shorten(s, most), false)) }

// shorten returns at most the given number of bytes of a text, and an ellipsis if that is not all.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// columns returns how many columns of a terminal a text takes at most. Terminals differ for emoji of several
// characters. Then it returns too many rather than too few, so that no line wraps.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300: // here are no marks or wide characters
		return 1
	case r == '\ufe0f': // makes an emoji of the character before it
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || r >= 0x1160 && r <= 0x11ff:
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// fit cuts a text to a number of columns. A text that is cut ends in an ellipsis.
func fit(s string, most int) string {
	if most <= 0 {
		return ""
	}
	used, end := 0, 0 // the ellipsis would go to end
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if used += runeColumns(r); used > most {
			return s[:end] + "…"
		}
		if used < most {
			end = i
		}
	}
	return s
}

// wrap breaks a text into lines of at most the given number of columns, at blanks if it can.
func wrap(s string, most int) []string {
	most = max(most, 2)
	var lines []string
	for _, line := range strings.Split(s, "\n") {
		for {
			used, end, blank := 0, len(line), -1
			for i, r := range line {
				if used += runeColumns(r); used > most {
					end = i
					break
				}
				if r == ' ' && i > 0 {
					blank = i
				}
			}
			if end == len(line) {
				break
			}
			if line[end] == ' ' {
				blank = end
			}
			if blank > 0 {
				end = blank
			}
			lines = append(lines, line[:end])
			line = strings.TrimPrefix(line[end:], " ")
		}
		lines = append(lines, line)
	}
	return lines
}
