package emit

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dave/jennifer/jen"
)

// value renders a declaration of a constant and returns the constant's value.
func value(t *testing.T, code jen.Code) string {
	t.Helper()
	file := jen.NewFile("p")
	file.Const().Id("x").Op("=").Add(code)
	var b bytes.Buffer
	if err := file.Render(&b); err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "p.go", b.Bytes(), 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := (&types.Config{}).Check("p", fset, []*ast.File{parsed}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return constant.StringVal(pkg.Scope().Lookup("x").(*types.Const).Val())
}

// FuzzLiterals checks that literals of several parts have the value of the string.
func FuzzLiterals(f *testing.F) {
	for _, seed := range []string{
		"", "short", "two\nlines\n", "\n\n", strings.Repeat("word ", 100), strings.Repeat("x", 500),
		strings.Repeat("ü", 300), strings.Repeat("\"\\", 100), "a\tb\x00c\u2028", strings.Repeat(" ", 300) + "\n",
		"use `code` and `more\n`", "`\\`", "\ufeffa\r\n", strings.Repeat("`", 3000), strings.Repeat("\n", 3000), "\f\v\x7f\ufffd",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		if got := value(t, stringLiteral(s)); got != s {
			t.Errorf("literal: got %q, want %q", got, s)
		}
		if got := value(t, rawLiteral(s)); got != s {
			t.Errorf("raw: got %q, want %q", got, s)
		}
	})
}

// TestRawLiteral checks that only characters that a raw literal cannot hold are outside of it.
func TestRawLiteral(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"a\": \"b\\\\c\"\n}":  "`{\n  \"a\": \"b\\\\c\"\n}`",
		"run `go test` or `go\nvet`": "`run ` + \"`go test`\" + ` or ` + \"`\" + `go\nvet` + \"`\"",
		"`\\`":                       "\"`\" + `\\` + \"`\"",
		"\ufeffa\r\n":                "\"\\ufeff\" + `a` + \"\\r\" + `\n`",
		"":                           "``",
	} {
		if got := fmt.Sprintf("%#v", rawLiteral(text)); got != want {
			t.Errorf("%q becomes\n%s, want\n%s", text, got, want)
		}
	}
}

func TestCommentLines(t *testing.T) {
	lines := commentLines("Run " + strings.Repeat("runs and ", 30) + "stops.\n\nIt has a list:\n  - one\n  - two\n\nand code:\n\n\tx := 1\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "//") || len(line) > docWidth || strings.TrimRight(line, " \t") != line {
			t.Errorf("bad line %q", line)
		}
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{"stops.\n//\n// It has a list:\n//   - one\n//   - two\n", "//\tx := 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
