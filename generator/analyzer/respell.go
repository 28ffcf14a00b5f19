package analyzer

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
)

// misspelledDirective matches the start of a line comment that was meant as a directive.
var misspelledDirective = regexp.MustCompile(`(?i)^//[ \t]*mcptask[ \t]*:[ \t]*([a-z]+)`)

// suggestSpelling returns a fix for a comment that only resembles a directive.
func (r *reader) suggestSpelling(pos token.Pos) []analysis.SuggestedFix {
	comment := r.commentAt(pos)
	if comment == nil {
		return nil
	}
	_, meant := directive.FindStray(comment.Text)
	begin := misspelledDirective.FindStringSubmatch(comment.Text)
	if !meant || begin == nil || !slices.Contains(directive.Kinds, strings.ToLower(begin[1])) {
		return nil
	}
	text := directive.Prefix + strings.ToLower(begin[1])
	return []analysis.SuggestedFix{{
		Message:   "write " + text,
		TextEdits: []analysis.TextEdit{{Pos: comment.Pos(), End: comment.Pos() + token.Pos(len(begin[0])), NewText: []byte(text)}},
	}}
}

// commentAt returns the comment at a position, or nil if there is none.
func (r *reader) commentAt(pos token.Pos) *ast.Comment {
	for _, file := range r.pass.Files {
		if pos < file.FileStart || pos >= file.FileEnd {
			continue
		}
		for _, group := range file.Comments {
			i := slices.IndexFunc(group.List, func(c *ast.Comment) bool { return c.Pos() <= pos && pos < c.End() })
			if i >= 0 {
				return group.List[i]
			}
		}
	}
	return nil
}

func (r *reader) hasText(pos token.Pos, text string) bool {
	comment := r.commentAt(pos)
	return comment != nil && strings.HasPrefix(comment.Text[pos-comment.Pos():], text)
}
