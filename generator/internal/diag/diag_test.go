package diag_test

import (
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

func TestErr(t *testing.T) {
	var list diag.List
	if list.Err("/w") != nil {
		t.Error("Err of an empty list is not nil")
	}
	list.Add(token.Position{Filename: "/w/b.go", Line: 1, Column: 1}, "last", "")
	list.Add(token.Position{Filename: "/w/a/a.go", Line: 10, Column: 2}, "third", "do this")
	list.Add(token.Position{Filename: "/w/a/a.go", Line: 9, Column: 3}, "second", "")
	list.Add(token.Position{Filename: "/w/a/a.go", Line: 9, Column: 3}, "second", "")
	list.Add(token.Position{Filename: "/w/a/a.go", Line: 9, Column: 1}, "first", "")
	list.Add(token.Position{Filename: "/x/c.go", Line: 1, Column: 1}, "outside", "")
	list.Add(token.Position{}, "nowhere", "")
	want := strings.Join([]string{
		"nowhere", "../x/c.go:1:1: outside", "a/a.go:9:1: first", "a/a.go:9:3: second", "a/a.go:10:2: third\n\thint: do this", "b.go:1:1: last",
	}, "\n")
	if got := list.Err("/w").Error(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestNotes(t *testing.T) {
	var list diag.List
	list.AddNote(token.Position{Filename: "/w/b.go", Line: 2, Column: 1}, "last\nof two")
	list.AddNote(token.Position{Filename: "/w/a/a.go", Line: 10, Column: 2}, "second")
	list.AddNote(token.Position{Filename: "/w/a/a.go", Line: 9, Column: 3}, "first")
	list.AddNote(token.Position{Filename: "/w/a/a.go", Line: 9, Column: 3}, "first")
	want := []string{"a/a.go:9:3: note: first", "a/a.go:10:2: note: second", "b.go:2:1: note: last of two"}
	if got := list.Notes("/w"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := list.Err("/w"); err != nil {
		t.Errorf("notes are an error: %v", err)
	}
}

// TestListing checks that the source line is below the message, and the caret below the mistake.
func TestListing(t *testing.T) {
	long := strings.Repeat("x", 200)
	dir := t.TempDir()
	source := "package p\n\n\ttype S\tstruct\r\n\tÄ := é\x00\xff wrong\n" + long + "y" + long + "\n"
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, test := range []struct {
		line, column int
		want         string
	}{
		{1, 1, "\n\tpackage p\n\t^"},
		{1, 9, "\n\tpackage p\n\t        ^"},
		{1, 10, "\n\tpackage p\n\t         ^"},
		{1, 11, ""},
		{2, 1, ""},
		{3, 1, "\n\ttype S\tstruct\n\t^"},
		{3, 9, "\n\ttype S\tstruct\n\t      \t^"},
		{4, 12, "\n\tÄ := é?? wrong\n\t        ^"},
		{5, 1, "\n\t" + x(96) + "...\n\t^"},
		{5, 201, "\n\t..." + x(48) + "y" + x(44) + "...\n\t" + strings.Repeat(" ", 51) + "^"},
		{9, 1, ""},
		{1, 0, ""},
	} {
		var list diag.List
		list.Add(token.Position{Filename: filepath.Join(dir, "a.go"), Line: test.line, Column: test.column}, "message", "do this")
		_, got, _ := strings.Cut(list.Err(dir).Error(), "message")
		if want := test.want + "\n\thint: do this"; got != want {
			t.Errorf("%d:%d: got%s\nwant%s", test.line, test.column, got, want)
		}
	}
}

// TestClean checks that text quoted from a source cannot control the terminal and is not too
// long to read.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"Ä \"b\"":                       "Ä \"b\"",
		"a\x1b[31m\x00\xffb":            "a?[31m??b",
		"a\n\tb\u00a0c\u202ed":          "a  b c?d",
		strings.Repeat("ä", 2000) + "z": strings.Repeat("ä", 497) + " ... " + strings.Repeat("ä", 496) + "z",
	} {
		var list diag.List
		list.Add(token.Position{}, text, text)
		if got := list.Err("/").Error(); got != want+"\n\thint: "+want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
