package emit

import (
	"go/doc/comment"
	"regexp"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
)

// docWidth is the width of a comment, including its slashes.
const docWidth = 97

// mostPieces is the number of pieces up to which a literal is split over lines. People do not read
// longer ones, and gofmt's time grows with the square of the pieces.
const mostPieces = 1000

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

// stringLiteral returns a string literal with a line for each line of the string.
func stringLiteral(s string) *jen.Statement {
	lines := slices.Collect(strings.Lines(s))
	if len(lines) < 2 || len(lines) > mostPieces {
		return jen.Lit(s)
	}
	code := jen.Lit(lines[0])
	for _, line := range lines[1:] {
		code.Op("+").Line().Lit(line)
	}
	return code
}

// notRaw finds text that a raw string literal cannot hold or that gofmt would change. It takes a code span in backticks
// as a whole.
var notRaw = regexp.MustCompile("`[^`\"\\\\\\x00-\\x1f\\x7f\\x{feff}\\x{fffd}]*`|[`\\x{feff}\\x{fffd}\\x00-\\x08\\x0b-\\x1f\\x7f]")

// rawLiteral returns a raw string literal. Text that it cannot hold is between its parts, in
// literals of its own.
func rawLiteral(s string) *jen.Statement {
	others := notRaw.FindAllStringIndex(s, mostPieces+1)
	if len(others) > mostPieces {
		return jen.Lit(s)
	}
	var pieces []jen.Code
	start := 0
	for _, other := range append(others, []int{len(s), len(s)}) {
		if raw := s[start:other[0]]; raw != "" || s == "" {
			pieces = append(pieces, jen.Op("`"+raw+"`"))
		}
		if start = other[1]; start > other[0] {
			pieces = append(pieces, jen.Lit(s[other[0]:start]))
		}
	}
	return jen.Custom(jen.Options{Separator: "+"}, pieces...)
}
