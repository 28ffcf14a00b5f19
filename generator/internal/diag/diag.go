// Package diag collects what is wrong with a declaration, so that a run reports everything at once.
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// Problem is one error in a user's source.
type Problem struct {
	Pos     token.Position
	Message string
	Hint    string // what to write instead; may be empty
	Source  string // the line that Pos is in; empty where it cannot be read
}

// List gathers problems. The zero value is empty and ready; it is not safe for concurrent use.
type List struct {
	problems []Problem
}

// Add records a problem at a position; hint may be empty.
func (l *List) Add(pos token.Position, message, hint string) {
	l.problems = append(l.problems, Problem{Pos: pos, Message: message, Hint: hint})
}

// Addf is Add without a hint.
func (l *List) Addf(pos token.Position, format string, args ...any) {
	l.Add(pos, fmt.Sprintf(format, args...), "")
}

// Len is the number of problems so far.
func (l *List) Len() int { return len(l.problems) }

// Err returns nil where there are no problems, else an [*Error] with all of them, sorted by
// position, their paths relative to dir.
func (l *List) Err(dir string) error {
	if len(l.problems) == 0 {
		return nil
	}
	problems := slices.Clone(l.problems)
	source := sources{}
	for i := range problems {
		problems[i].Message, problems[i].Hint = clean(problems[i].Message), clean(problems[i].Hint)
		problems[i].Source = source.line(problems[i].Pos)
		problems[i].Pos.Filename = Relative(dir, problems[i].Pos.Filename)
	}
	return sorted(problems)
}

// sorted is the error of problems by their position, each once.
func sorted(problems []Problem) *Error {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Pos.Filename, b.Pos.Filename),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return &Error{Problems: slices.Compact(problems)}
}

// Error is every problem of a run.
type Error struct {
	Problems []Problem
}

// Error says each problem so, the first line for editors:
//
//	path/file.go:12:3: message
//		the line of the source
//		    ^
//		hint: what to write instead
func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return strings.Join(texts, "\n")
}

// Join makes one error of those of several runs that are not nil: the problems of all, sorted, without
// what an error around them says, and below what is no [*Error], each once.
func Join(errs ...error) error {
	var problems []Problem
	var others []string
	for _, err := range errs {
		if list := (*Error)(nil); errors.As(err, &list) {
			problems = append(problems, list.Problems...)
		} else if err != nil && !slices.Contains(others, err.Error()) {
			others = append(others, err.Error())
		}
	}
	if len(problems) > 0 {
		others = append([]string{sorted(problems).Error()}, others...)
	}
	if len(others) == 0 {
		return nil
	}
	return errors.New(strings.Join(others, "\n"))
}

func (p Problem) String() string {
	text := p.Message
	if p.Pos.Filename != "" {
		text = p.Pos.String() + ": " + text
	}
	text += listing(p.Source, p.Pos.Column)
	if p.Hint != "" {
		text += "\n\thint: " + p.Hint
	}
	return text
}

// Relative is path as seen from dir, with forward slashes; path itself where that is impossible.
func Relative(dir, path string) string {
	if path == "" {
		return ""
	}
	if rel, err := filepath.Rel(dir, path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path)
}
