// Package indent prints JSON from outside in lines, within a bound. Indentation grows with the depth of a value times the
// number of its leaves, so json.Indent can make gigabytes of a megabyte.
package indent

import (
	"bytes"
	"encoding/json"
)

// Indentation may add freeGrowth bytes to a text, and growth times its length.
const (
	freeGrowth = 64 << 10
	growth     = 3
)

// JSON returns a JSON text with a line for each member and item, indented by two spaces for each level. If that would add
// more than 64 KiB and three times the length of the text, JSON writes the values below the outer levels on one line. It
// returns a text that is not JSON as it is.
func JSON(data []byte) []byte {
	if !json.Valid(data) {
		return data
	}
	var b bytes.Buffer
	broken := findBreaks(data)
	walk(data, func(text []byte) { b.Write(text) }, func(level, spaces int) {
		if level > broken {
			return
		}
		if spaces == afterName {
			b.WriteByte(' ')
			return
		}
		b.WriteByte('\n')
		for range spaces {
			b.WriteString("  ")
		}
	})
	return b.Bytes()
}

// findBreaks returns how many of the outer levels of a JSON text may be broken into lines.
func findBreaks(data []byte) (broken int) {
	var added []int // bytes, by level
	walk(data, func([]byte) {}, func(level, spaces int) {
		for len(added) < level {
			added = append(added, 0)
		}
		added[level-1]++ // the end of the line, or the space after a name
		if spaces != afterName {
			added[level-1] += 2 * spaces
		}
	})
	left := freeGrowth + growth*len(data)
	for _, n := range added {
		if left -= n; left < 0 {
			break
		}
		broken++
	}
	return broken
}

// afterName stands for the space between the name of a member and its value.
const afterName = -1

// walk calls text for each part of a valid JSON text, without the white space between them. It calls space for each
// place at which an indented text has space. level is that of the object or array there, 1 for the outermost.
// indentation is that of the line that begins, or afterName.
func walk(data []byte, text func(part []byte), space func(level, indentation int)) {
	level := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '"':
			end := findStringEnd(data, i)
			text(data[i:end])
			i = end - 1
			continue
		case '}', ']':
			space(level, level-1)
			level--
		}
		text(data[i : i+1])
		switch data[i] {
		case '{', '[':
			if rest := bytes.TrimLeft(data[i+1:], " \t\r\n"); rest[0] == '}' || rest[0] == ']' { // an empty one stays together
				text(rest[:1])
				i = len(data) - len(rest)
				continue
			}
			level++
			space(level, level)
		case ',':
			space(level, level)
		case ':':
			space(level, afterName)
		}
	}
}

// findStringEnd returns the index after the string that begins at start.
func findStringEnd(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}
