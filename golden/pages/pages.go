// Package pages reads the documents of the repository, for the tests of this module and of those below it.
package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// Temporal is the page about Temporal. The tests of the module examples/temporal compile its code, since the module
// at the root requires nothing of Temporal.
const Temporal = "docs/temporal.md"

// Page is a document of the repository.
type Page struct {
	Name   string // its path from the root, with slashes
	Text   string // its text without fenced code
	Blocks []Block
}

// Block is fenced code, with the paragraph before it.
type Block struct {
	At       string // page:line
	Language string
	Lead     string // the paragraph
	Code     string
}

// leadFile matches the end of a paragraph that names the file of the code below it.
var leadFile = regexp.MustCompile("(In|From)\\s`([^`]+)`:$")

// File returns the relation of a block to its file, In or From, and the file. Both are "" if its
// lead names none.
func (b Block) File() (relation, name string) {
	if lead := leadFile.FindStringSubmatch(b.Lead); lead != nil {
		return strings.ToUpper(lead[1][:1]) + lead[1][1:], lead[2]
	}
	return "", ""
}

// Parse reads a page. It returns an error if a block has no end.
func Parse(name, content string) (Page, error) {
	p := Page{Name: name}
	var open *Block
	paragraph, text := "", &strings.Builder{}
	for i, line := range strings.Split(content, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &Block{At: fmt.Sprintf("%s:%d", name, i+1), Language: fence, Lead: strings.TrimSpace(paragraph)}
		case isFence:
			p.Blocks = append(p.Blocks, *open)
			open, paragraph = nil, ""
		case open != nil:
			open.Code += line + "\n"
		default:
			if fmt.Fprintln(text, line); line == "" {
				line = "\n"
			} else if strings.HasSuffix(paragraph, "\n") {
				paragraph = ""
			}
			paragraph = strings.TrimLeft(paragraph+" "+line, " ")
		}
	}
	if open != nil {
		return Page{}, fmt.Errorf("%s: the block is not closed: add a line of ```", open.At)
	}
	p.Text = text.String()
	return p, nil
}
