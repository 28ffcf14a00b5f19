// Package description turns Go comments into descriptions for readers who do not see the code: language models, and
// people who are asked questions.
package description

import (
	"go/ast"
	"go/doc/comment"
	"regexp"
	"strings"
	"unicode"
)

// Comment is a Go comment for readers who do not see the code.
type Comment struct {
	// Text is plain text with one line per paragraph. It keeps lists and code.
	Text string
	// Deprecated is the paragraph that begins with "Deprecated:". It is part of Text only if the comment has no other.
	Deprecated string
}

// HidesDeprecation reports whether readers do not learn that something is deprecated.
func (c Comment) HidesDeprecation() bool {
	return c.Deprecated != "" && !strings.Contains(strings.ToLower(c.Text), "deprecated")
}

// Read reads the first of the comments that has text for such readers.
func Read(groups ...*ast.CommentGroup) Comment {
	for _, group := range groups {
		if c := read(Source(group)); c.Text != "" {
			return c
		}
	}
	return Comment{}
}

func read(source string) Comment {
	text, deprecated := split(source)
	c := Comment{Text: flatten(text), Deprecated: flatten(deprecated)}
	if c.Text == "" {
		c.Text = c.Deprecated
	}
	return c
}

// flatten prints the text of a comment with one line per paragraph. Lines of code begin with a tab.
func flatten(source string) string {
	var parser comment.Parser
	printer := comment.Printer{TextWidth: -1, TextCodePrefix: "\t"}
	return strings.TrimSpace(string(printer.Text(parser.Parse(source))))
}

// Source returns the text of a comment as [ast.CommentGroup.Text] does, and without the indentation of block comments.
func Source(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	plain := &ast.CommentGroup{}
	for _, c := range group.List {
		if strings.HasPrefix(c.Text, "/*") {
			c = &ast.Comment{Slash: c.Slash, Text: dedent(c.Text)}
		}
		plain.List = append(plain.List, c)
	}
	return plain.Text()
}

// dedent removes the common indentation of the lines of a block comment, and a star before each of them. The first line
// begins behind the mark of the comment.
func dedent(block string) string {
	lines := strings.Split(strings.TrimSuffix(block, "*/"), "\n")
	rest := lines[1:]
	cut := func() {
		indent := commonIndent(rest)
		for i, line := range rest {
			rest[i] = strings.TrimRightFunc(strings.TrimPrefix(line, indent), unicode.IsSpace)
		}
	}
	if cut(); beginWithStar(rest) {
		for i, line := range rest {
			rest[i] = strings.TrimPrefix(line, "*")
		}
		cut()
	}
	lines[0] = "/*" + strings.TrimSpace(strings.TrimLeft(lines[0], "/*"))
	return strings.Join(lines, "\n") + "*/"
}

// commonIndent returns the space that all nonempty lines begin with.
func commonIndent(lines []string) string {
	indent, found := "", false
	for _, line := range lines {
		text := strings.TrimLeftFunc(line, unicode.IsSpace)
		if text == "" {
			continue
		}
		space := line[:len(line)-len(text)]
		if !found {
			indent, found = space, true
		}
		for !strings.HasPrefix(space, indent) {
			indent = indent[:len(indent)-1]
		}
	}
	return indent
}

// beginWithStar reports whether all nonempty lines begin with a star.
func beginWithStar(lines []string) bool {
	found := false
	for _, line := range lines {
		if line != "" && !strings.HasPrefix(line, "*") {
			return false
		}
		found = found || line != ""
	}
	return found
}

var (
	// remark begins a remark of the authors to themselves, which lasts to the end of its paragraph.
	remark = regexp.MustCompile(`^(TODO|FIXME|XXX|HACK|BUG)\b(.?)`)
	// lateRemark begins one behind a sentence.
	lateRemark = regexp.MustCompile(`([.!?;]|\s//)\s+(TODO|FIXME|XXX|HACK)[:(].*`)
	// toolLine is a line for a tool that reads the source.
	toolLine = regexp.MustCompile(`^(//\s*)?(nolint\b|lint:|go:[a-z]|revive:|exhaustive:|swagger:|nosemgrep\b|#nosec\b|\+[a-z][\w:]*(=|\s*$))`)
	// suppression follows a text on its line.
	suppression = regexp.MustCompile(`\s*(//\s*nolint\b|//\s*nosemgrep\b|(//\s*)?#nosec\b).*`)
	deprecation = regexp.MustCompile(`^Deprecated:(\s|$)`)
)

// split separates the text of a comment from its deprecation. Both are without remarks of the authors to themselves and
// without lines for other tools.
func split(source string) (text, deprecated string) {
	const publish, drop, deprecate = 0, 1, 2
	var parts [3]strings.Builder
	to, before := publish, ""
	for line := range strings.Lines(source) {
		blank := strings.TrimSpace(line) == ""
		switch {
		case blank:
			to = publish
		case deprecation.MatchString(line):
			to = deprecate
		case beginsRemark(line, before):
			to = drop
		}
		before = strings.TrimSpace(line)
		switch {
		case toolLine.MatchString(line):
		case blank && parts[deprecate].Len() > 0: // keeps paragraphs apart, whichever they belong to
			parts[deprecate].WriteString(line)
			parts[publish].WriteString(line)
		case line[0] == ' ' || line[0] == '\t': // a list or code
			parts[to].WriteString(line)
		default:
			if cut := lateRemark.ReplaceAllString(line, "$1"); cut != line && to == publish {
				parts[to].WriteString(strings.TrimSuffix(strings.TrimRight(cut, "\n"), " //") + "\n")
				to = drop
				continue
			}
			parts[to].WriteString(strings.TrimRight(suppression.ReplaceAllString(line, ""), "\n") + "\n")
		}
	}
	return parts[publish].String(), parts[deprecate].String()
}

// beginsRemark reports whether a line begins a remark such as "TODO(me): check it". A word without a colon or a
// parenthesis may be part of a sentence, such as "adds an item to the", "TODO list".
func beginsRemark(line, before string) bool {
	m := remark.FindStringSubmatch(line)
	switch {
	case m == nil:
		return false
	case m[2] == ":" || m[2] == "(":
		return true
	case m[1] == "BUG":
		return false
	}
	return (m[2] == "" || m[2] == " " || m[2] == "\n") && (before == "" || strings.ContainsAny(before[len(before)-1:], ".!?:;"))
}
