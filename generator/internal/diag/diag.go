// Package diag collects problems and notes about declarations, so that one run reports all of them.
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
	Hint    string // the text to write instead; may be empty
	Source  string // the line of Pos; empty if it cannot be read
}

// List collects problems and notes. The zero value is ready to use. A List is not safe for
// concurrent use.
type List struct {
	problems []Problem
	notes    []Problem // decisions of the generator that are not mistakes
}

// Add records a problem at a position; hint may be empty.
func (l *List) Add(pos token.Position, message, hint string) {
	l.problems = append(l.problems, Problem{Pos: pos, Message: message, Hint: hint})
}

// AddMisspelling records a problem about a word at a position. If a candidate is [Nearest] to the word,
// the hint asks for it, with prefix before it. Otherwise hint is used.
func (l *List) AddMisspelling(pos token.Position, message, prefix, word string, candidates []string, hint string) {
	p := Problem{Pos: pos, Message: message, Hint: hint}
	if near := Nearest(strings.ToLower(word), candidates); near != "" {
		p.Hint = DidYouMean(strings.ToLower(word), candidates)
		if prefix != "" {
			p.Hint = fmt.Sprintf("did you mean %s?", prefix+near)
		}
	}
	l.problems = append(l.problems, p)
}

// AddNote records a decision of the generator about a position. The message also tells the user how to change it.
func (l *List) AddNote(pos token.Position, message string) {
	l.notes = append(l.notes, Problem{Pos: pos, Message: message})
}

// Notes returns a line for each note, sorted by position and without duplicates:
//
//	path/file.go:12:6: note: message
//
// The paths are relative to dir.
func (l *List) Notes(dir string) []string {
	notes := slices.Clone(l.notes)
	for i := range notes {
		notes[i].Pos.Filename = Relative(dir, notes[i].Pos.Filename)
	}
	var lines []string
	for _, n := range newError(notes).Problems {
		lines = append(lines, n.Pos.String()+": note: "+cleanMessage(n.Message))
	}
	return lines
}

// Len returns the number of problems so far.
func (l *List) Len() int { return len(l.problems) }

// Err returns nil if there are no problems. Otherwise it returns an [*Error] with all problems
// sorted by position and with paths relative to dir.
func (l *List) Err(dir string) error {
	if len(l.problems) == 0 {
		return nil
	}
	problems := slices.Clone(l.problems)
	source := sourceCache{}
	for i := range problems {
		problems[i].Message, problems[i].Hint = cleanMessage(problems[i].Message), cleanMessage(problems[i].Hint)
		problems[i].Source = source.line(problems[i].Pos)
		problems[i].Pos.Filename = Relative(dir, problems[i].Pos.Filename)
	}
	return newError(problems)
}

// newError returns an error with the problems sorted by position, without duplicates.
func newError(problems []Problem) *Error {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Pos.Filename, b.Pos.Filename), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return &Error{Problems: slices.Compact(problems)}
}

// Error holds all problems of a run.
type Error struct {
	Problems []Problem
}

// Error formats each problem like this, with a first line that editors understand:
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

// Join combines the errors of several runs and ignores nil. The first of the joined errors is an
// [*Error] with the problems of all others of that type, sorted and without the text that wraps them.
// Other errors follow, without duplicates.
func Join(errs ...error) error {
	var problems []Problem
	var others []error
	for _, err := range errs {
		if list := (*Error)(nil); errors.As(err, &list) {
			problems = append(problems, list.Problems...)
		} else if err != nil && !slices.ContainsFunc(others, func(o error) bool { return o.Error() == err.Error() }) {
			others = append(others, err)
		}
	}
	if len(problems) > 0 {
		others = slices.Insert(others, 0, error(newError(problems)))
	}
	if len(others) == 1 {
		return others[0]
	}
	return errors.Join(others...)
}

func (p Problem) String() string {
	text := p.Message
	if p.Pos.Filename != "" {
		text = p.Pos.String() + ": " + text
	}
	text += renderListing(p.Source, p.Pos.Column)
	if p.Hint != "" {
		text += "\n\thint: " + p.Hint
	}
	return text
}

// Absolute returns path as seen from the directory dir.
func Absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Relative returns path relative to dir, with forward slashes. It returns path itself if that is
// impossible.
func Relative(dir, path string) string {
	if path == "" {
		return ""
	}
	if rel, err := filepath.Rel(dir, path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path)
}
