package jsonschema

import (
	"slices"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// TestCheckedFormats checks that each format that is called checked refuses a text, and that a described one refuses none.
func TestCheckedFormats(t *testing.T) {
	refuses := func(format string) bool {
		compiled, err := toNode(&schema{Type: "string", Format: format}, nil).CompileSchema()
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		return slices.ContainsFunc([]string{`"%zz"`, `"("`, `"{"`, `"-"`}, func(text string) bool {
			value, err := jsontree.Parse([]byte(text))
			return err != nil || compiled.Refuse(value) != ""
		})
	}
	for _, format := range checkedFormats {
		if !refuses(format) {
			t.Errorf("%s refuses nothing", format)
		}
	}
	for _, format := range append(describedFormats, "nonsense") {
		if refuses(format) {
			t.Errorf("%s is checked", format)
		}
	}
}
