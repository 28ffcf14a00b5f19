package terminal

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// written are the keys of a text.
func written(text string) (keys []key) {
	for _, r := range text {
		keys = append(keys, key{r: r})
	}
	return keys
}

func pressed(codes ...keyCode) (keys []key) {
	for _, code := range codes {
		keys = append(keys, key{code: code})
	}
	return keys
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, bytes string
		want        []key
	}{
		{"text", "aß大", written("aß大")},
		{"invalid bytes", "a\xffb\xc3(", written("ab(")},
		{"controls", "\r\n\x7f\b\x15\x17\x03\x04\x00\t\u0085", pressed(keyEnter, keyEnter, keyBackspace, keyBackspace, keyClearLine, keyClearWord, keyInterrupt, keyDecline)},
		{"arrows", "\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[1;5A\x1b[D", pressed(keyUp, keyDown, keyPageUp, keyPageDown)},
		{"with Alt", "\x1bx1", written("1")},
		{"Esc", "\x1b", pressed(keyEscape)},
		{"Esc twice", "\x1b\x1b", pressed(keyEscape, keyEscape)},
		{"Esc and an arrow", "\x1b\x1b[A", pressed(keyEscape, keyUp)},
		{"half a sequence", "\x1b[12", nil},
		{"no sequence", "\x1b[\rA", append(pressed(keyEnter), written("A")...)},
		{"a long sequence", "\x1b[" + strings.Repeat("1;", 15) + "x", written("x")},
		{"pasted", "\x1b[200~a\tb\r\nc\x04\x1b[A\n\x1b[201~\rd", append(append(written("a b c"), pressed(keyEnter)...), written("d")...)},
		{"pasted without an end", "\x1b[200~a\n\x03\r", append(written("a"), pressed(keyInterrupt, keyEnter)...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p keyParser
			got := append(p.parse([]byte(c.bytes)), p.flush()...)
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			var slow keyParser
			var bytewise []key
			for _, b := range []byte(c.bytes) {
				bytewise = append(bytewise, slow.parse([]byte{b})...)
			}
			if bytewise = append(bytewise, slow.flush()...); !reflect.DeepEqual(bytewise, c.want) {
				t.Errorf("byte by byte: got %v, want %v", bytewise, c.want)
			}
		})
	}
}

func TestEdit(t *testing.T) {
	for _, c := range []struct{ name, bytes, want string }{
		{"letters", "abc", "abc"},
		{"backspace", "大e\u0301x\x7f\x7f", "大"},
		{"backspace at the beginning", "\x7fa", "a"},
		{"clear", "abc def\x15g", "g"},
		{"a word", "abc def  \x17x", "abc x"},
		{"no decline in a text", "ab\x04c", "abc"},
		{"arrows", "a\x1b[A\x1b[Bb", "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var parser keyParser
			var p prompt
			for _, k := range parser.parse([]byte(c.bytes)) {
				if p.press(k) != editing {
					t.Fatalf("%v ends the edit", k)
				}
			}
			if string(p.text) != c.want {
				t.Errorf("got %q, want %q", string(p.text), c.want)
			}
		})
	}
	for bytes, want := range map[string]outcome{"\r": entered, "\x04": declined, "\x03": interrupted, "\x1b": dismissed} {
		var parser keyParser
		var p prompt
		keys := append(parser.parse([]byte(bytes)), parser.flush()...)
		if got := p.press(keys[0]); got != want {
			t.Errorf("%q: got %v, want %v", bytes, got, want)
		}
	}
}

func TestMove(t *testing.T) {
	for _, c := range []struct {
		at   int
		keys string
		want int
	}{
		{0, "d", 1}, {0, "u", 24}, {24, "d", 0}, {0, "D", 10}, {20, "D", 24}, {5, "U", 0}, {0, "U", 24}, {24, "D", 24}, {-1, "d", 0}, {-1, "u", 24}, {-1, "D", 9}, {-1, "U", 24},
	} {
		p := prompt{choices: make([]string, 25), at: c.at, text: []rune("x")}
		p.press(key{code: map[string]keyCode{"u": keyUp, "d": keyDown, "U": keyPageUp, "D": keyPageDown}[c.keys]})
		if p.at != c.want || p.text != nil {
			t.Errorf("%s from %d: got %d, want %d", c.keys, c.at, p.at, c.want)
		}
	}
}

func TestPick(t *testing.T) {
	choices := []string{"small", "Medium", "2", "maximal", "größe"}
	for typed, want := range map[string]int{
		"small": 0, "2": 2, "3": 2, "1": 0, " medium ": 1, "me": 1, "max": 3, "GRÖ": 4, "m": -1, "": -1, "6": -1, "0": -1, "-1": -1, "x": -1, "smaller": -1,
	} {
		at, ok := pick(choices, typed)
		if ok != (want >= 0) || ok && at != want {
			t.Errorf("%q: got %d %v, want %d", typed, at, ok, want)
		}
	}
}

func TestDrawList(t *testing.T) {
	p := prompt{label: "  color (1-25): ", at: 14}
	for i := range 25 {
		p.choices = append(p.choices, fmt.Sprint("color ", i+1))
	}
	got := strings.Join(p.draw(40, 9, style{}), "\n")
	want := "    13 color 13\n    14 color 14\n  ❯ 15 color 15\n    16 color 16\n    25 choices in all\n  color (1-25): "
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p.label, p.choices = "  A long label (whole number from 1 to 100) [80]: ", nil
	if got := strings.Join(p.draw(24, 24, style{}), "\n"); got != "  A long label (whole\n  number from 1 to 100)\n  [80]:\n  > " {
		t.Errorf("got\n%s", got)
	}
	p = prompt{choices: []string{"a", "b"}, several: true, checked: map[int]bool{1: true}, label: "x: ", at: -1}
	if got := strings.Join(p.draw(30, 24, style{}), "\n"); got != "    1 [ ] a\n    2 [x] b\nx: " {
		t.Errorf("got\n%s", got)
	}
}

// FuzzEditor types any bytes into prompts of each kind.
func FuzzEditor(f *testing.F) {
	for _, s := range []string{"abc\x7f\x15", "\x1b[A\x1b[B 1,2\r", "\x1b[200~a\r\nb\x1b[201~\r", "\x1b\x1b[", "大e\u0301\x17\xff"} {
		f.Add([]byte(s), uint8(20))
	}
	f.Fuzz(func(t *testing.T, data []byte, width uint8) {
		colors := []string{"Red", "Green", "2", "大"}
		for _, p := range []*prompt{
			{label: "  name: "},
			{label: "  password: ", hidden: true},
			{label: "  color: ", choices: colors, find: func(typed string) (int, bool) { return pick(colors, typed) }},
			{label: "  colors: ", choices: []string{"Red", "Green", "Blue"}, several: true, checked: map[int]bool{}, at: -1},
		} {
			var parser keyParser
			keys := append(parser.parse(data), parser.flush()...)
			for _, k := range keys {
				if k.code != keyRune && k.r != 0 || k.code == keyRune && (k.r < 0x20 || k.r >= 0x7f && k.r < 0xa0) {
					t.Fatalf("%q has the key %v", data, k)
				}
				if p.press(k) != editing {
					break
				}
				if len(p.choices) > 0 && (p.at < -1 || p.at >= len(p.choices)) {
					t.Fatalf("%q: at is %d", data, p.at)
				}
			}
			if len(parser.rest) > 0 || !utf8.ValidString(string(p.text)) {
				t.Errorf("%q: the text is %q, the rest %q", data, string(p.text), parser.rest)
			}
			for _, line := range p.draw(max(int(width), 1), 24, style{}) {
				if columns(line) > max(int(width), 1) || Printable(line, false) != line {
					t.Errorf("%q: the line %q in %d columns", data, line, width)
				}
				if p.hidden && strings.ContainsAny(line, "0123456789") {
					t.Errorf("%q: %q shows something hidden", data, line)
				}
			}
		}
	})
}
