// Package directive scans //mcptask: comments and records the position of each argument.
//
// It has its own scanner because go/ast's ParseArgs splits quoted strings without an error.
package directive

import (
	"fmt"
	"go/token"
	"strconv"
	"strings"
)

// Prefix starts every directive.
const Prefix = "//mcptask:"

// Kinds lists the valid directives.
var Kinds = []string{"service", "tool", "input", "error", "schema", "enum", "open", "allow"}

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
	HasValue bool   // false for a key without a value
	Quoted   bool   // the value is a Go string
	Pos      token.Pos
	ValuePos token.Pos // valid if HasValue
}

// Error describes a directive that cannot be read.
type Error struct {
	Pos     token.Pos
	Message string
	Hint    string
}

// Hints about the syntax of arguments.
const (
	form    = "arguments are key, key=value or key=\"Go string\", separated by spaces; quote a text of several words"
	noComma = "separate arguments by spaces only"
)

// Scan reads the text of a line comment that starts with [Prefix] at pos. It returns everything it
// could read along with the errors, so that one mistake does not hide the next.
func Scan(pos token.Pos, text string) (Directive, []Error) {
	s := scanner{text: text, base: pos, at: len(Prefix)}
	d := Directive{Pos: pos}
	d.Kind = s.takeUntil(" \t\r")
	for s.skipSpace(); s.at < len(s.text); s.skipSpace() {
		if arg, ok := s.takeArg(); ok {
			d.Args = append(d.Args, arg)
		}
	}
	return d, s.errs
}

type scanner struct {
	text string
	base token.Pos
	at   int
	errs []Error
}

func (s *scanner) pos() token.Pos { return s.base + token.Pos(s.at) }

func (s *scanner) addError(pos token.Pos, message, hint string) {
	s.errs = append(s.errs, Error{Pos: pos, Message: message, Hint: hint})
}

func (s *scanner) skipSpace() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// takeUntil consumes everything before the first stop character.
func (s *scanner) takeUntil(stop string) string {
	rest := s.text[s.at:]
	end := strings.IndexAny(rest, stop)
	if end < 0 {
		end = len(rest)
	}
	s.at += end
	return rest[:end]
}

// takeArg consumes one key, key=value or key="Go string". It reports whether the argument is valid.
func (s *scanner) takeArg() (Arg, bool) {
	arg := Arg{Pos: s.pos()}
	arg.Key = s.takeUntil("= \t\r")
	if !isKey(arg.Key) {
		word := arg.Key + s.takeUntil(" \t\r")
		hint := form
		switch {
		case strings.HasPrefix(word, "="):
			hint = "write key=value"
		case strings.HasSuffix(word, ","):
			hint = noComma
		case strings.HasPrefix(word, "//"):
			hint = "a directive extends to the end of its line; put the comment on its own line"
			s.at = len(s.text)
		}
		s.addError(arg.Pos, fmt.Sprintf("%q is not an argument", word), hint)
		return Arg{}, false
	}
	if s.at >= len(s.text) || s.text[s.at] != '=' {
		return arg, !s.reportSpacedEquals(arg)
	}
	s.at++
	arg.HasValue, arg.ValuePos = true, s.pos()
	if s.at < len(s.text) && (s.text[s.at] == '"' || s.text[s.at] == '`') {
		arg.Quoted = true
		return arg, s.takeQuoted(&arg)
	}
	arg.Value = s.takeUntil(" \t\r")
	switch {
	case arg.Value == "":
		s.addError(arg.ValuePos, arg.Key+" has no value after the =", "write "+arg.Key+"=value, without spaces around the =")
		return Arg{}, false
	case strings.HasPrefix(arg.Value, "'"):
		s.addError(arg.ValuePos, arg.Key+" has a value in single quotes", "use double quotes")
		s.takeUntil("'")
		s.at = min(s.at+1, len(s.text))
		return Arg{}, false
	case strings.ContainsAny(arg.Value, "\"`"):
		s.addError(arg.ValuePos, fmt.Sprintf("%s=%s has a quote inside", arg.Key, arg.Value), "quote the whole value: "+arg.Key+"=\"...\"")
		s.at = len(s.text)
		return Arg{}, false
	case strings.HasSuffix(arg.Value, ","):
		s.addError(arg.ValuePos+token.Pos(len(arg.Value)-1), "there is a comma after "+arg.Key, noComma)
		return Arg{}, false
	}
	return arg, true
}

// reportSpacedEquals reports whether the argument is written as "key = value", which is a mistake.
func (s *scanner) reportSpacedEquals(arg Arg) bool {
	rest := strings.TrimLeft(s.text[s.at:], " \t")
	if !strings.HasPrefix(rest, "=") {
		return false
	}
	s.skipSpace()
	s.addError(s.pos(), arg.Key+" has a space before its =", "write "+arg.Key+"=value")
	s.at++
	s.skipSpace()
	if literal, err := strconv.QuotedPrefix(s.text[s.at:]); err == nil {
		s.at += len(literal)
	} else {
		s.takeUntil(" \t\r")
	}
	return true
}

// takeQuoted consumes a Go string literal.
func (s *scanner) takeQuoted(arg *Arg) bool {
	literal, err := strconv.QuotedPrefix(s.text[s.at:])
	if err != nil {
		if !hasClosingQuote(s.text[s.at:]) {
			s.addError(arg.ValuePos, "the string of "+arg.Key+" has no closing quote", "end it with "+s.text[s.at:s.at+1])
		} else {
			s.addError(arg.ValuePos, "the string of "+arg.Key+" is not a Go string", `in double quotes, write a backslash as \\ and a quote as \"`)
		}
		s.at = len(s.text)
		return false
	}
	s.at += len(literal)
	arg.Value, _ = strconv.Unquote(literal) // QuotedPrefix has checked it
	if rest := s.pos(); s.at < len(s.text) && !strings.ContainsRune(" \t\r", rune(s.text[s.at])) {
		tail := s.takeUntil(" \t\r")
		s.addError(rest, fmt.Sprintf("%q follows the closing quote of %s", tail, arg.Key), "separate arguments by spaces")
		return false
	}
	return true
}

// hasClosingQuote reports whether the literal at the start of text has an end.
func hasClosingQuote(text string) bool {
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
