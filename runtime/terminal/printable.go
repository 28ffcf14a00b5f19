package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// maxMarks bounds how many combining marks follow each other. A pile of them would cover other lines.
const maxMarks = 8

// Printable returns the text of a server without what could drive a terminal or deceive its reader: control
// characters, escape sequences, marks that change the direction of text, and characters that cannot be seen.
// Bytes that are not UTF-8 become U+FFFD. If keepLines is true, ends of lines stay and become "\n". Otherwise
// they become spaces, and so does a tab.
func Printable(s string, keepLines bool) string {
	var b strings.Builder
	b.Grow(len(s))
	marks := 0
	for len(s) > 0 {
		if n := sequenceLength(s); n > 0 {
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\r' && strings.HasPrefix(s, "\r\n"):
			size = 2
			fallthrough
		case isLineEnd(r):
			r = ' '
			if keepLines {
				r = '\n'
			}
		case r == '\t':
			r = ' '
		case isHidden(r):
			r = -1
		}
		s = s[size:]
		switch {
		case r < 0:
			continue
		case !unicode.In(r, unicode.Mn, unicode.Me):
			marks = 0
		case marks == maxMarks:
			continue
		default:
			marks++
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isLineEnd reports whether a terminal, or a program behind it, may begin a line after r.
func isLineEnd(r rune) bool {
	return r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// isHidden reports whether r has no look of its own. Joiners are allowed: scripts and emoji need them.
func isHidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs) && r != '\u200c' && r != '\u200d'
}

// sequenceLength returns the length of the escape sequence at the beginning of s, or 0. If the sequence does not
// end, it returns the length of its beginning, so that the rest is seen.
func sequenceLength(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == '\x1b' && len(s) > 1 && s[1] >= 0x20 && s[1] <= 0x7e:
		r, n = rune(s[1]), 2
	case r == '\x1b':
		return 1
	case r >= 0x80 && r < 0xa0 && r != '\u0085': // the same as ESC and a letter
		r -= 0x40
	default:
		return 0
	}
	isFinal := func(c byte) bool { return c >= 0x30 && c <= 0x7e }
	switch {
	case r == '[': // a control sequence
		isFinal = func(c byte) bool { return c >= 0x40 && c <= 0x7e }
	case strings.ContainsRune("]PX^_", r): // a string, such as the title of the window
		return stringLength(s, n)
	case r > 0x2f: // nothing follows
		return n
	}
	for i := n; i < len(s) && s[i] >= 0x20 && s[i] <= 0x7e; i++ {
		if isFinal(s[i]) {
			return i + 1
		}
	}
	return n
}

// stringLength is sequenceLength for a sequence that begins with n bytes, goes on with text, and ends with one of
// three marks. No other control is in it, so that no byte is looked at for several sequences.
func stringLength(s string, n int) int {
	for i := n; i < len(s); i++ {
		for _, end := range []string{"\a", "\x1b\\", "\u009c"} {
			if strings.HasPrefix(s[i:], end) {
				return i + len(end)
			}
		}
		if s[i] < 0x20 || s[i] == '\xc2' && i+1 < len(s) && s[i+1] < 0xa0 {
			break
		}
	}
	return n
}

// brief returns at most the given number of bytes of a server's text, in one line.
func brief(s string, most int) string {
	return strings.TrimSpace(Printable(text.Shorten(s, most), false))
}

// columns returns how many columns of a terminal a text takes at most. Terminals differ for emoji of several
// characters. Then it is rather too many, so that no line wraps.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300: // no marks and nothing wide
		return 1
	case r == '\ufe0f': // makes an emoji of what is before it
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

// fitEnd is fit, but keeps the end of the text.
func fitEnd(s string, most int) string {
	if columns(s) <= most {
		return s
	}
	if most <= 0 {
		return ""
	}
	used := 1
	start := len(s)
	for start > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:start])
		if used += runeColumns(r); used > most {
			break
		}
		start -= size
	}
	return "…" + strings.TrimLeftFunc(s[start:], func(r rune) bool { return runeColumns(r) == 0 })
}

// wrap breaks a text into lines of at most the given number of columns, at blanks if it can.
func wrap(s string, most int) []string {
	most = max(most, 2)
	var lines []string
	for _, line := range strings.Split(s, "\n") {
		for columns(line) > most {
			used, end, blank := 0, 0, -1
			for i, r := range line {
				if used += runeColumns(r); used > most {
					end = i
					break
				}
				if r == ' ' && i > 0 {
					blank = i
				}
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
