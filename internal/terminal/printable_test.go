package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ name, s, want, lines string }{
		{"text", "größe 大 🙂", "größe 大 🙂", ""},
		{"lines", "a\nb\r\nc\rd\u2028e\ff", "a b c d e f", "a\nb\nc\nd\ne\nf"},
		{"a tab", "a\tb", "a b", ""},
		{"colors", "\x1b[1;31mred\x1b[0m", "red", ""},
		{"a screen that is cleared", "a\x1b[2J\x1b[Hb", "ab", ""},
		{"a title", "a\x1b]0;title\x07b\x1b]2;title\x1b\\c", "abc", ""},
		{"a link", "\x1b]8;;https://evil.example\x1b\\bank.example\x1b]8;;\x1b\\", "bank.example", ""},
		{"a device", "a\x1bPq#0\x1b\\b\x1b_x\x1b\\c", "abc", ""},
		{"one byte", "a\u009b31mb\u009d0;title\u009cc", "abc", ""},
		{"invalid bytes", "a\x9b31mb\xff", "a\ufffd31mb\ufffd", ""},
		{"a sequence without an end", "a\x1b[31", "a31", ""},
		{"a title with another control", "a\u009d0;t\u009d1;u\u009cb", "a0;tb", ""},
		{"a title without an end", "a\x1b]0;b\nc", "a0;b c", "a0;b\nc"},
		{"a sequence in a sequence", "\x1b[3\x1b[31m1mX", "31mX", ""},
		{"an escape at the end", "a\x1b", "a", ""},
		{"an escape before a letter", "a\x1bcb\x1b(0d\x1b大", "abd大", ""},
		{"other controls", "a\x00\x07\x08\x7fb\u0085", "ab ", "ab\n"},
		{"other directions", "invoice\u202egpj.exe\u2066\u200f", "invoicegpj.exe", ""},
		{"nothing to see", "a\u200b\ufeff\U000e0041b", "ab", ""},
		{"joiners", "👩\u200d👧 می\u200cخواهم", "👩\u200d👧 می\u200cخواهم", ""},
		{"a pile of marks", "a" + strings.Repeat("\u0301", 100) + "b", "a" + strings.Repeat("\u0301", maxMarks) + "b", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Printable(c.s, false); got != c.want {
				t.Errorf("in one line: got %q, want %q", got, c.want)
			}
			if c.lines == "" {
				c.lines = c.want
			}
			if got := Printable(c.s, true); got != c.lines {
				t.Errorf("with lines: got %q, want %q", got, c.lines)
			}
		})
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"a\nb", "\x1b[31mred\x1b[0m", "\x1b]0;t\x07", "\u009b1m\u009d;\u009c", "\xc2\x1b\\", "a\u0301\u202e\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, keepLines := range []bool{false, true} {
			got := Printable(s, keepLines)
			for _, r := range got {
				if r < 0x20 && (r != '\n' || !keepLines) || r >= 0x7f && r < 0xa0 || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
					t.Errorf("%q is left in %q of %q", r, got, s)
				}
			}
			if again := Printable(got, keepLines); again != got || !utf8.ValidString(got) || len(got) > 3*len(s) {
				t.Errorf("%q becomes %q, and that %q", s, got, again)
			}
			for _, most := range []int{0, 1, 2, 7} {
				if begin := fit(got, most); columns(begin) > most {
					t.Errorf("%d columns of %q are %q", most, got, begin)
				}
			}
			for _, line := range wrap(got, 5) {
				if columns(line) > 5 {
					t.Errorf("%q in 5 columns has the line %q", got, line)
				}
			}
		}
	})
}

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		s    string
		want int
	}{{"", 0}, {"abc", 3}, {"大小", 4}, {"e\u0301", 1}, {"ｱ", 1}, {"Ａ", 2}, {"🙂", 2}, {"…", 1}, {"한", 2}, {"\u1112\u1161", 2}} {
		if got := columns(c.s); got != c.want {
			t.Errorf("%q takes %d columns, want %d", c.s, got, c.want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"大小大", 5, "大小…"}, {"大小大", 4, "大…"},
		{"abc", 1, "…"}, {"abc", 0, ""}, {"大", 1, "…"}, {"ae\u0301x", 2, "a…"},
	} {
		if got := fit(c.s, c.most); got != c.want {
			t.Errorf("%q in %d: got %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		s    string
		want []string
	}{
		{"", []string{""}},
		{"one two three", []string{"one two", "three"}},
		{"one two\nthree", []string{"one two", "three"}},
		{"one twothree", []string{"one", "twothree"}},
		{"onetwothree four", []string{"onetwoth", "ree four"}},
		{"大小大小大 小", []string{"大小大小", "大 小"}},
		{" eight678", []string{" eight67", "8"}},
	} {
		if got := wrap(c.s, 8); strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("%q: got %q, want %q", c.s, got, c.want)
		}
	}
	if got := wrap(strings.Repeat("x", 4<<20), 8); len(got) != 4<<20/8 { // as long as a server's description may be
		t.Errorf("got %d lines", len(got))
	}
}
