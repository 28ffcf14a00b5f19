package diag_test

import (
	"go/token"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

func TestErr(t *testing.T) {
	var list diag.List
	if list.Err("/w") != nil {
		t.Error("no problems are an error")
	}
	list.Add(token.Position{Filename: "/w/b.go", Line: 1, Column: 1}, "last", "")
	list.Add(token.Position{Filename: "/w/a/a.go", Line: 10, Column: 2}, "third", "do this")
	list.Add(token.Position{Filename: "/w/a/a.go", Line: 9, Column: 3}, "second", "")
	list.Add(token.Position{Filename: "/w/a/a.go", Line: 9, Column: 3}, "second", "")
	list.Addf(token.Position{Filename: "/w/a/a.go", Line: 9, Column: 1}, "first %d", 1)
	list.Add(token.Position{Filename: "/x/c.go", Line: 1, Column: 1}, "outside", "")
	list.Add(token.Position{}, "nowhere", "")
	want := strings.Join([]string{
		"nowhere", "../x/c.go:1:1: outside", "a/a.go:9:1: first 1", "a/a.go:9:3: second", "a/a.go:10:2: third; do this", "b.go:1:1: last",
	}, "\n")
	if got := list.Err("/w").Error(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"name", "title", "task", "ttl", "poll", "readonly"}
	for word, want := range map[string]string{
		"tll": "ttl", "tlt": "ttl", "titel": "title", "readOnly": "readonly", "nam": "name", "pol": "poll", "wibble": "", "": "",
	} {
		if got := diag.Nearest(word, keys); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
