package jsonschema

import (
	"go/doc/comment"
	"strings"
)

// Description converts a doc comment to plain text with one line per paragraph. It keeps lists and
// code.
func Description(doc string) string {
	var parser comment.Parser
	printer := comment.Printer{TextWidth: -1, TextCodePrefix: "\t"}
	return strings.TrimSpace(string(printer.Text(parser.Parse(doc))))
}
