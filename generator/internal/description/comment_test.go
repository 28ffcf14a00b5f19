package description_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/description"
)

func TestRead(t *testing.T) {
	for _, test := range []struct{ name, comment, want, deprecated string }{
		{"a sentence", "// Branch is the branch\n// to build.", "Branch is the branch to build.", ""},
		{"paragraphs", "// One.\n//\n// Two\n// lines.", "One.\n\nTwo lines.", ""},
		{"a list", "// One of:\n//   - a\n//   - b", "One of:\n  - a\n  - b", ""},
		{"code", "// For example:\n//\n//\tx := 1", "For example:\n\n\tx := 1", ""},
		{"a directive", "// The branch.\n//go:generate x\n//nolint:lll", "The branch.", ""},
		{"an instruction with a space", "// The branch.\n// nolint:lll // it is long", "The branch.", ""},
		{"nolint alone", "//nolint", "", ""},
		{"nolint behind a text", "// the branch // nolint:lll", "the branch", ""},
		{"nosec", "// the token #nosec G101", "the token", ""},
		{"lint", "// lint:ignore U1000 used by JSON", "", ""},
		{"a marker of Kubernetes", "// +optional\n// +kubebuilder:validation:Minimum=1\n// The branch.", "The branch.", ""},
		{"plus", "// +1 for each vote", "+1 for each vote", ""},
		{"a todo", "// TODO(x): fix", "", ""},
		{"a todo without a colon", "// TODO check it", "", ""},
		{"a todo below a sentence", "// The branch.\n// TODO check it\n// soon.", "The branch.", ""},
		{"a todo behind a line without a full stop", "// the branch\n// TODO: check it", "the branch", ""},
		{"a todo behind a sentence", "// checks the work. FIXME: allow more\n// than one.\n//\n// It is slow.", "checks the work.\n\nIt is slow.", ""},
		{"a todo behind slashes", "// the branch // TODO(me): check it", "the branch", ""},
		{"a todo list", "// Adds an item to the\n// TODO list of the user.", "Adds an item to the TODO list of the user.", ""},
		{"a paragraph behind a todo", "// TODO: check it\n// soon.\n//\n// The branch.", "The branch.", ""},
		{"other remarks", "// The branch.\n//\n// FIXME: a\n//\n// XXX b\n//\n// HACK: c\n//\n// BUG(me): d", "The branch.", ""},
		{"a bug", "// BUG reports are read daily.", "BUG reports are read daily.", ""},
		{"a deprecated field", "// The branch.\n//\n// Deprecated: Use Ref\n// instead.\n//\n// It is short.", "The branch.\n\nIt is short.", "Deprecated: Use Ref instead."},
		{"nothing but deprecated", "// Deprecated: Use Ref.", "Deprecated: Use Ref.", "Deprecated: Use Ref."},
		{"a block", "/* D is a\n\tblock. */", "D is a block.", ""},
		{"a block on lines of its own", "/*\n\tD is a\n\tblock.\n\n\tIt has:\n\t  - a\n\t  - b\n\n\tAnd code:\n\n\t\tx := 1\n\n\tThe end.\n*/",
			"D is a block.\n\nIt has:\n  - a\n  - b\n\nAnd code:\n\n\tx := 1\n\nThe end.", ""},
		{"a block with stars", "/**\n * D is a\n * block.\n */", "D is a block.", ""},
		{"a block with a list of stars", "/*\nOne of:\n  * a\n  * b\n*/", "One of:\n  - a\n  - b", ""},
		{"a block with a todo", "/*\n\tD is a block.\n\tTODO: more\n*/", "D is a block.", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n\n"+test.comment+"\nvar X int\n", parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			got := description.Read(file.Decls[0].(*ast.GenDecl).Doc)
			if got.Text != test.want || got.Deprecated != test.deprecated {
				t.Errorf("got %q, deprecated %q, want %q, %q", got.Text, got.Deprecated, test.want, test.deprecated)
			}
		})
	}
}

func TestReadFirst(t *testing.T) {
	above := &ast.CommentGroup{List: []*ast.Comment{{Text: "// TODO: explain"}}}
	behind := &ast.CommentGroup{List: []*ast.Comment{{Text: "// the branch"}}}
	if got := description.Read(above, nil, behind); got.Text != "the branch" {
		t.Errorf("got %q", got.Text)
	}
}
