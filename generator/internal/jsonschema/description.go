package jsonschema

import (
	"go/doc/comment"
	"strings"
)

// Description is a doc comment as plain text: a paragraph a line, lists and code as they are.
func Description(doc string) string {
	var parser comment.Parser
	printer := comment.Printer{TextWidth: -1, TextCodePrefix: "\t"}
	return strings.TrimSpace(string(printer.Text(parser.Parse(doc))))
}
