package directive_test

import (
	"fmt"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
)

// show formats the result of Scan for a table: key@offset=value@offset, then the errors.
func show(text string) string {
	d, errs := directive.Scan(100, text)
	parts := []string{d.Kind}
	for _, a := range d.Args {
		s := fmt.Sprintf("%s@%d", a.Key, a.Pos-100)
		if a.HasValue {
			s += fmt.Sprintf("=%s@%d", a.Value, a.ValuePos-100)
		}
		parts = append(parts, s)
	}
	for _, e := range errs {
		parts = append(parts, fmt.Sprintf("! %d %s", e.Pos-100, e.Message))
	}
	return strings.Join(parts, "\n")
}

func TestScan(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"//mcptask:tool", "tool"},
		{"//mcptask:tool\r", "tool"},
		{"//mcptask:tool readonly", "tool\nreadonly@15"},
		{"//mcptask:tool\ttask=required  ttl=24h ", "tool\ntask@15=required@20\nttl@30=24h@34"},
		{`//mcptask:tool title="a \"b\" = c" x`, "tool\ntitle@15=a \"b\" = c@21\nx@35"},
		{"//mcptask:tool title=`a b`", "tool\ntitle@15=a b@21"},
		{`//mcptask:tool title=""`, "tool\ntitle@15=@21"},
		{`//mcptask:tool url=http://x/?a=b`, "tool\nurl@15=http://x/?a=b@19"},
		{`//mcptask:tool title="open`, "tool\n! 21 the string of title has no closing quote"},
		{`//mcptask:tool title="open\"`, "tool\n! 21 the string of title has no closing quote"},
		{`//mcptask:tool title="\q" a`, "tool\n! 21 the string of title is not a Go string"},
		{`//mcptask:tool title="a"b c`, "tool\nc@26\n! 24 \"b\" follows the closing quote of title"},
		{`//mcptask:tool title=a"b"`, "tool\n! 21 title=a\"b\" has a quote inside"},
		{`//mcptask:tool a= b`, "tool\nb@18\n! 17 a has no value after the ="},
		{`//mcptask:tool a =b c`, "tool\nc@20\n! 17 a has a space before its ="},
		{`//mcptask:tool a = "b c" d`, "tool\nd@25\n! 17 a has a space before its ="},
		{`//mcptask:tool 5=a b`, "tool\nb@19\n! 15 \"5=a\" is not an argument"},
		{`//mcptask:tool a=b, c`, "tool\nc@20\n! 18 there is a comma after a"},
		{`//mcptask:tool a=Ship it? 2 b`, "tool\na@15=Ship@17\nb@28\n! 22 \"it?\" is not an argument\n! 26 \"2\" is not an argument"},
		{`//mcptask:tool a="Ship" it?`, "tool\na@15=Ship@17\n! 24 \"it?\" is not an argument"},
		{`//mcptask:tool a // why`, "tool\na@15\n! 17 \"//\" is not an argument"},
	} {
		if d := cmp.Diff(test.want, show(test.text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", test.text, d)
		}
	}
}

func TestMeant(t *testing.T) {
	for text, want := range map[string]int{
		"// mcptask:tool":                  3,
		"//  mcptask:tool readonly":        4,
		"//MCPTASK:tool":                   2,
		"//mcptask :tool":                  2,
		"//mcptask: tool":                  2,
		"//mcptask:":                       2,
		"/*mcptask:tool*/":                 2,
		"/*\n * mcptask:input\n */":        6,
		"// Mcptask: Service":              3,
		"//mcptask:tool":                   -1, // this is a directive
		"// mcptask: the runtime's errors": -1,
		"// see mcptask:tool":              -1,
		"//	//mcptask:tool":                -1,
		"// mcptask.Task":                  -1,
		"//go:generate mcptaskgen":         -1,
		"//":                               -1,
	} {
		stray, ok := directive.FindStray(text)
		if !ok {
			stray.Offset = -1
		}
		if stray.Offset != want || ok && stray.Problem == "" {
			t.Errorf("%q is %+v, want %d", text, stray, want)
		}
		if stray.Kind != "" && !strings.Contains(strings.ToLower(text), stray.Kind) {
			t.Errorf("%q names no %s", text, stray.Kind)
		}
	}
}

// FuzzScan checks that every reported position is within the line, and that scanning ends.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{"tool a=b", `tool title="a b" c`, `tool t="`, "tool a = b", "tool =", "tool `", "tool '"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		text := directive.Prefix + rest
		d, errs := directive.Scan(1, text)
		inside := func(pos token.Pos) {
			if pos < 1 || int(pos) > len(text)+1 {
				t.Errorf("%q: position %d is outside", text, pos)
			}
		}
		for _, a := range d.Args {
			inside(a.Pos)
			if !strings.HasPrefix(text[a.Pos-1:], a.Key) {
				t.Errorf("%q: %q is not at %d", text, a.Key, a.Pos)
			}
			if a.HasValue {
				inside(a.ValuePos)
			}
		}
		for _, e := range errs {
			inside(e.Pos)
		}
		directive.FindStray(text)
		directive.FindStray("//" + rest)
		directive.FindStray("/*" + rest + "*/")
	})
}
