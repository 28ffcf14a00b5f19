// Package directive reads //mcptask: comments: what they say and where each word stands.
//
// The scanner is our own because go/ast's ParseArgs splits quoted strings without an error.
package directive

import (
	"fmt"
	"go/token"
	"strconv"
	"strings"
)

// Prefix starts every directive.
const Prefix = "//mcptask:"

// Kinds are the directives there are.
var Kinds = []string{"service", "tool", "input"}

// Directive is one line: //mcptask:kind key key=value key="Go string".
type Directive struct {
	Kind string
	Pos  token.Pos
	Args []Arg
}

// Arg is one argument of a directive.
type Arg struct {
	Key      string
	Value    string // unquoted
	HasValue bool   // false for a bare key
	Quoted   bool   // the value is a Go string
	Word     bool   // Key cannot be one; it may belong to the value without quotes before it
	Pos      token.Pos
	ValuePos token.Pos // where HasValue
}

// Error is a directive that cannot be read.
type Error struct {
	Pos     token.Pos
	Message string
	Hint    string
}

// Hints at what arguments look like.
const (
	Form    = "arguments are key, key=value or key=\"Go string\", separated by spaces"
	NoComma = "separate arguments by spaces alone"
)

// Scan reads the text of a line comment that starts with [Prefix] and stands at pos. It returns
// what it could read beside the errors, so that one mistake does not hide the next.
func Scan(pos token.Pos, text string) (Directive, []Error) {
	s := scanner{text: text, base: pos, at: len(Prefix)}
	d := Directive{Pos: pos}
	d.Kind = s.until(" \t\r")
	for s.skipSpace(); s.at < len(s.text); s.skipSpace() {
		if arg, ok := s.arg(); ok {
			d.Args = append(d.Args, arg)
			s.open = arg.HasValue && !arg.Quoted || s.open && !arg.HasValue
		}
	}
	return d, s.errs
}

type scanner struct {
	text string
	base token.Pos
	at   int
	open bool // a value without quotes stands before, and words alone since
	errs []Error
}

func (s *scanner) pos() token.Pos { return s.base + token.Pos(s.at) }

func (s *scanner) fail(pos token.Pos, message, hint string) {
	s.errs = append(s.errs, Error{Pos: pos, Message: message, Hint: hint})
}

func (s *scanner) skipSpace() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// until takes everything before the first of the stop characters.
func (s *scanner) until(stop string) string {
	rest := s.text[s.at:]
	end := strings.IndexAny(rest, stop)
	if end < 0 {
		end = len(rest)
	}
	s.at += end
	return rest[:end]
}

// arg takes one key, key=value or key="Go string"; false where it is none.
func (s *scanner) arg() (Arg, bool) {
	arg := Arg{Pos: s.pos()}
	arg.Key = s.until("= \t\r")
	if !isKey(arg.Key) {
		word := arg.Key + s.until(" \t\r")
		hint := Form
		switch {
		case strings.HasPrefix(word, "="):
			hint = "write key=value"
		case s.open && !strings.Contains(word, "=") && !strings.HasPrefix(word, "//"):
			return Arg{Key: word, Word: true, Pos: arg.Pos}, true
		case strings.HasSuffix(word, ","):
			hint = NoComma
		case strings.HasPrefix(word, "//"):
			hint = "a directive takes its line to the end; put the comment on a line of its own"
			s.at = len(s.text)
		}
		s.fail(arg.Pos, fmt.Sprintf("%q is not an argument", word), hint)
		return Arg{}, false
	}
	if s.at >= len(s.text) || s.text[s.at] != '=' {
		return arg, !s.spacedEquals(arg)
	}
	s.at++
	arg.HasValue, arg.ValuePos = true, s.pos()
	if s.at < len(s.text) && (s.text[s.at] == '"' || s.text[s.at] == '`') {
		arg.Quoted = true
		return arg, s.quoted(&arg)
	}
	arg.Value = s.until(" \t\r")
	switch {
	case arg.Value == "":
		s.fail(arg.ValuePos, arg.Key+" has no value after the =", "write "+arg.Key+"=value, without spaces around the =")
		return Arg{}, false
	case strings.HasPrefix(arg.Value, "'"):
		s.fail(arg.ValuePos, arg.Key+" has a value in single quotes", "use double quotes")
		s.until("'")
		s.at = min(s.at+1, len(s.text))
		return Arg{}, false
	case strings.ContainsAny(arg.Value, "\"`"):
		s.fail(arg.ValuePos, fmt.Sprintf("%s=%s has a quote inside", arg.Key, arg.Value), "quote the whole value: "+arg.Key+"=\"...\"")
		s.at = len(s.text)
		return Arg{}, false
	case strings.HasSuffix(arg.Value, ","):
		s.fail(arg.ValuePos+token.Pos(len(arg.Value)-1), "a comma after "+arg.Key, NoComma)
		return Arg{}, false
	}
	return arg, true
}

// spacedEquals reports "key = value".
func (s *scanner) spacedEquals(arg Arg) bool {
	rest := strings.TrimLeft(s.text[s.at:], " \t")
	if !strings.HasPrefix(rest, "=") {
		return false
	}
	s.skipSpace()
	s.fail(s.pos(), arg.Key+" has a space before its =", "write "+arg.Key+"=value")
	s.at++
	s.skipSpace()
	if literal, err := strconv.QuotedPrefix(s.text[s.at:]); err == nil {
		s.at += len(literal)
	} else {
		s.until(" \t\r")
	}
	return true
}

// quoted takes a Go string literal.
func (s *scanner) quoted(arg *Arg) bool {
	literal, err := strconv.QuotedPrefix(s.text[s.at:])
	if err != nil {
		if !closes(s.text[s.at:]) {
			s.fail(arg.ValuePos, "the string of "+arg.Key+" has no closing quote", "end it with "+s.text[s.at:s.at+1])
		} else {
			s.fail(arg.ValuePos, "the string of "+arg.Key+" is not a Go string", `in double quotes a backslash is written \\ and a quote \"`)
		}
		s.at = len(s.text)
		return false
	}
	s.at += len(literal)
	arg.Value, _ = strconv.Unquote(literal) // QuotedPrefix has checked it
	if rest := s.pos(); s.at < len(s.text) && !strings.ContainsRune(" \t\r", rune(s.text[s.at])) {
		tail := s.until(" \t\r")
		s.fail(rest, fmt.Sprintf("%q follows the closing quote of %s", tail, arg.Key), "separate arguments by spaces")
		return false
	}
	return true
}

// closes tells whether the literal that starts text has an end at all.
func closes(text string) bool {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == text[0]:
			return true
		case text[i] == '\\' && text[0] == '"':
			i++
		}
	}
	return false
}

func isKey(word string) bool {
	for i, r := range word {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_'
		digit := '0' <= r && r <= '9' || r == '-'
		if !letter && (i == 0 || !digit) {
			return false
		}
	}
	return word != ""
}
