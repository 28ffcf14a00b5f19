package jsontree_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// TestRead checks the order, the numbers and the places of values.
func TestRead(t *testing.T) {
	f, err := jsontree.Read("a.json", []byte("\ufeff{\"b\": 1.50,\n \"a\": [true, null, \"<x>\"]}\n{}"), 10)
	if err != nil || len(f.Values) != 2 {
		t.Fatal(f, err)
	}
	n := f.Values[0]
	if got, want := n.Spaced(), `{"b": 1.50, "a": [true, null, "<x>"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := f.Position(n.Members[1].Offset).String(), "a.json:2:2"; got != want {
		t.Errorf("the name is at %s, want %s", got, want)
	}
	if got, want := f.Position(n.Get("a").Items[2].Offset).String(), "a.json:2:20"; got != want {
		t.Errorf("the string is at %s, want %s", got, want)
	}
	if text, ok := n.Get("a").Items[2].Text(); text != "<x>" || !ok || !n.Get("b").Is(json.Number("1.50")) || !n.Get("a").Items[1].Is(nil) || n.Get("c").Is(nil) {
		t.Error("wrong values")
	}
}

// TestMistakes checks that each mistake has its place.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "a": 2}`:  `1:10: duplicate member "a"`,
		`[[[[]]]]`:          `1:4: the values nest deeper than 3`,
		"{\"a\":\n  oops}":  "2:3: this is not JSON: invalid character 'o' looking for beginning of value",
		"[1,\n":             "2:1: the file ends inside a JSON value",
		"[\"\xff\"]":        "1:3: the file is not UTF-8",
		"\ufeff{\"a\": 1,}": "1:12: this is not JSON: invalid character '}' looking for beginning of object key string",
	} {
		_, err := jsontree.Read("", []byte(text), 3)
		var fault *jsontree.Error
		if !errors.As(err, &fault) || fault.Pos.String()+": "+fault.Message != want {
			t.Errorf("%q: %+v, want %s", text, fault, want)
		}
	}
	for _, text := range []string{"", " ", "1 2", "{} x"} {
		if n, err := jsontree.Parse([]byte(text)); err == nil {
			t.Errorf("%q is %s", text, n.Compact())
		}
	}
}

// TestEdit builds and changes an object.
func TestEdit(t *testing.T) {
	n := jsontree.NewObject(jsontree.Member{Name: "a", Value: jsontree.NewString("x")})
	n.Set("c", jsontree.NewArray(jsontree.NewString("y"), jsontree.NewObject()))
	n.Set("a", jsontree.NewArray())
	if got, want := n.Compact(), `{"a":[],"c":["y",{}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSpread checks which values have lines of their own.
func TestSpread(t *testing.T) {
	n, err := jsontree.Parse([]byte(`{"a": {"b": 1, "c": {}}, "long": {"e": [1, {"b": 2}], "f": []}, "g": [1, 2]}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "a": {"b": 1, "c": {}},
  "long": {
    "e": [
      1,
      {"b": 2}
    ],
    "f": []
  },
  "g": [1, 2]
}`
	long := func(m jsontree.Member) bool { return m.Name == "long" || m.Name == "e" || m.Name == "f" }
	if got := n.Spread(long); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSpreadDeepValue checks that a spread value does not grow with its depth times its leaves.
func TestSpreadDeepValue(t *testing.T) {
	const depth = 400
	text := strings.Repeat(`{"a":`, depth) + "[1" + strings.Repeat(",1", 10_000) + "]" + strings.Repeat("}", depth)
	n, err := jsontree.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := n.Spread(func(jsontree.Member) bool { return true })
	if again, err := jsontree.Parse([]byte(got)); err != nil || again.Compact() != text || len(got) > 2*len(text) {
		t.Errorf("%d bytes become %d, %v", len(text), len(got), err)
	}
}
