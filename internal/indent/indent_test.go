package indent_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcptaskgen/mcptaskgen/internal/indent"
)

// TestJSON checks that texts within the bound look as json.Indent writes them.
func TestJSON(t *testing.T) {
	value := rapid.Custom(func(t *rapid.T) any {
		return rapid.OneOf(
			rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Float32().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
			rapid.Just[any](map[string]any{}), rapid.Just[any]([]any{}),
		).Draw(t, "value")
	})
	for range 4 {
		inner := value
		value = rapid.OneOf(inner, rapid.SliceOfN(inner, 0, 4).AsAny(), rapid.MapOfN(rapid.String(), inner, 0, 4).AsAny())
	}
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(value.Draw(t, "value"))
		if err != nil {
			t.Skip(err)
		}
		var want, spaced bytes.Buffer
		if err := json.Indent(&want, data, "", "  "); err != nil {
			t.Fatal(err)
		}
		if err := json.Indent(&spaced, data, "", rapid.SampledFrom([]string{" ", "\t", "\r\n"}).Draw(t, "space")); err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{data, spaced.Bytes()} {
			if got := indent.JSON(text); string(got) != want.String() {
				t.Fatalf("%s\nis\n%s\nwant\n%s", text, got, &want)
			}
		}
	})
}

// TestBound checks that indentation grows with the length of a text and not with its depth too, and that it changes nothing
// else.
func TestBound(t *testing.T) {
	const size = 1 << 20
	for name, text := range map[string]string{
		"deep leaves":  strings.Repeat(`{"a":`, 980) + "[1" + strings.Repeat(",1", size/2) + "]" + strings.Repeat("}", 980),
		"deep objects": strings.Repeat("[", 500) + "{}" + strings.Repeat(`,{"a":[{}]}`, size/11) + strings.Repeat("]", 500),
		"flat leaves":  "[1" + strings.Repeat(",1", size/2) + "]",
		"only depth":   strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
	} {
		got := indent.JSON([]byte(text))
		if most := 9*len(text) + 64<<10; len(got) > most {
			t.Errorf("%s: %d bytes become %d, more than %d", name, len(text), len(got), most)
		}
		if isIndented := bytes.HasPrefix(got, []byte(text[:1]+"\n  ")); isIndented != (name == "flat leaves") {
			t.Errorf("%s: indented is %v: %.100q", name, isIndented, got)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, got); err != nil || compact.String() != text {
			t.Errorf("%s: the text has changed: %v", name, err)
		}
	}
}

// TestNoJSON checks that a text that is not JSON stays as it is.
func TestNoJSON(t *testing.T) {
	for _, text := range []string{"", "{", `{"a"`, "[1,]", `"a`, "x", "{} {}"} {
		if got := indent.JSON([]byte(text)); string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
