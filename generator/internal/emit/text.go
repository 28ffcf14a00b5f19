package emit

import (
	"go/doc/comment"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dave/jennifer/jen"
)

const (
	lineWidth = 120 // of code
	docWidth  = 97  // of comments, the slashes included
	tabWidth  = 4   // what a tab counts for

	// longestLiteral is how many bytes of a string are broken over lines: nobody reads more, and gofmt's
	// time grows with the square of the pieces.
	longestLiteral = 1 << 16
)

// commentLines turns the text of a doc comment into lines of comment.
func commentLines(doc string) []string {
	var parser comment.Parser
	printer := comment.Printer{TextPrefix: "// ", TextCodePrefix: "//\t", TextWidth: docWidth - len("// ")}
	text := strings.TrimRight(string(printer.Text(parser.Parse(doc))), "\n")
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimRight(line, " \t"))
	}
	return lines
}

// addDoc writes a doc comment above what comes next.
func addDoc(g *jen.Group, doc string) {
	// Each line is a comment of its own: jennifer makes /* */ of one with line breaks, and tools
	// take that for written by hand.
	for _, line := range commentLines(doc) {
		g.Comment(line)
	}
}

// literal is a string literal, broken over lines where it is long.
func literal(s string) expr {
	quoted := strconv.Quote(s)
	if len(quoted) <= docWidth-3*tabWidth && !strings.Contains(strings.TrimSuffix(s, "\n"), "\n") || len(s) > longestLiteral {
		return expr{jen.Lit(s), quoted}
	}
	var code *jen.Statement
	for i, piece := range pieces(s, docWidth-5*tabWidth) {
		if i == 0 {
			code = jen.Lit(piece)
			continue
		}
		code.Op("+").Line().Lit(piece)
	}
	return expr{code, quoted}
}

// pieces cuts a string after line breaks, else after spaces, so that no piece is wider than width
// as a literal.
func pieces(s string, width int) []string {
	var result []string
	for line := range strings.SplitAfterSeq(s, "\n") {
		for len(line) > width || len(strconv.Quote(line)) > width {
			used := len(`""`)
			cut := cutAt(line, func(next string) bool {
				used += len(strconv.Quote(next)) - len(`""`)
				return used <= width
			})
			result, line = append(result, line[:cut]), line[cut:]
		}
		if line != "" {
			result = append(result, line)
		}
	}
	return result
}

// cutAt returns the longest prefix that fits, up to and with its last space if it has one. It asks for
// each character whether that fits behind those before it, and takes the first in any case.
func cutAt(s string, fits func(next string) bool) int {
	cut := 0
	for cut < len(s) {
		_, size := utf8.DecodeRuneInString(s[cut:])
		if !fits(s[cut:cut+size]) && cut > 0 {
			break
		}
		cut += size
	}
	if space := strings.LastIndexByte(s[:cut], ' '); space > 0 {
		return space + 1
	}
	return cut
}

// raw is a raw string literal of text without backticks; a line that is too long is broken between two
// literals, unless it is longer than longestLiteral.
func raw(s string) jen.Code {
	code := jen.Null()
	start, column := 0, len("const = `")
	var done []string
	for i, end := 0, 0; i < len(s); {
		if i >= end {
			if end = strings.IndexByte(s[i:], '\n') + i + 1; end == i {
				end = len(s)
			}
		}
		line := s[i:end]
		if len(line) > longestLiteral {
			i, column = end, 0
			continue
		}
		limit := lineWidth - len("` + \n") - column
		if len(line) <= limit {
			i, column = end, 0
			continue
		}
		used := 0
		cut := cutAt(line, func(next string) bool {
			used += len(next)
			return used <= limit
		})
		done = append(done, s[start:i+cut])
		start, i, column = i+cut, i+cut, tabWidth+1
	}
	done = append(done, s[start:])
	for i, piece := range done {
		if i > 0 {
			code.Op("+").Line()
		}
		code.Op("`" + piece + "`")
	}
	return code
}
