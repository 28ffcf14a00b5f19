package text

import (
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"äöü", 3, "ä…"}, // never half a letter
		{"äöü", 4, "äö…"},
		{"a\xffb", 3, "a\xffb"},
		{"a\xffbc", 3, "ab…"},
		{"日本語", 0, "…"},
	} {
		got := Shorten(c.s, c.most)
		if got != c.want || len(c.s) > c.most && !utf8.ValidString(got) {
			t.Errorf("Shorten(%q, %d) = %q, want %q", c.s, c.most, got, c.want)
		}
	}
}
