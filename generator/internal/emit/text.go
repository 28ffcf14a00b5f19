package emit

import (
	"go/doc/comment"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dave/jennifer/jen"
)

const (
	lineWidth = 120 // for code
	docWidth  = 97  // for comments, including the slashes
	tabWidth  = 4   // the width of a tab

	// longestLiteral is the number of bytes up to which a string is split over lines. People do not
	// read longer ones, and gofmt's time grows with the square of the pieces.
	longestLiteral = 1 << 16
)

// commentLines formats a doc comment and returns its lines.
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

// addDoc writes a doc comment above the next declaration.
func addDoc(g *jen.Group, doc string) {
	// Add each line as its own comment. jennifer turns text with line breaks into a block comment,
	// which tools take for hand-written code.
	for _, line := range commentLines(doc) {
		g.Comment(line)
	}
}

// stringLiteral returns a string literal, split over lines if it is long.
func stringLiteral(s string) expr {
	quoted := strconv.Quote(s)
	if len(quoted) <= docWidth-3*tabWidth && !strings.Contains(strings.TrimSuffix(s, "\n"), "\n") || len(s) > longestLiteral {
		return expr{jen.Lit(s), quoted}
	}
	var code *jen.Statement
	for i, piece := range splitLiteral(s, docWidth-5*tabWidth) {
		if i == 0 {
			code = jen.Lit(piece)
			continue
		}
		code.Op("+").Line().Lit(piece)
	}
	return expr{code, quoted}
}

// splitLiteral splits a string after line breaks, or else after spaces, so that no piece is wider
// than width as a literal.
func splitLiteral(s string, width int) []string {
	var result []string
	for line := range strings.SplitAfterSeq(s, "\n") {
		for len(line) > width || len(strconv.Quote(line)) > width {
			used := len(`""`)
			cut := cutPrefix(line, func(next string) bool {
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

// cutPrefix returns the length of the longest prefix that fits, ending after its last space if it
// has one. fits is called with each character in turn. The first character is always included.
func cutPrefix(s string, fits func(next string) bool) int {
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

// rawLiteral returns a raw string literal for text without backticks. It splits a long line between
// two literals, unless the line is longer than longestLiteral.
func rawLiteral(s string) jen.Code {
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
		cut := cutPrefix(line, func(next string) bool {
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
