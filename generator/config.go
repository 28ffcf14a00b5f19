package generator

import (
	"fmt"
	"go/build"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// sideOf returns the half of the code that the flags select.
func sideOf(flags commandline.Flags) model.Side {
	switch {
	case flags.ServerOnly:
		return model.ServerSide
	case flags.ClientOnly:
		return model.ClientSide
	}
	return model.Both
}

// checkOutputName refuses a name that is not a file beside the declarations, or one that only some
// builds of the package include.
func checkOutputName(name string) error {
	const hint = "give the name of a Go file beside the declarations, such as " + OutputName
	switch {
	case name != filepath.Base(name) || strings.ContainsAny(name, `/\`):
		return fmt.Errorf("%q is a path; %s", name, hint)
	case filepath.Ext(name) != ".go" || strings.ContainsAny(name[:1], "._"):
		return fmt.Errorf("the go command ignores a file named %q; %s", name, hint)
	case strings.HasSuffix(name, "_test.go"):
		return fmt.Errorf("%q is the name of a test file; %s", name, hint)
	}
	// No file name ends in this made-up system, so it excludes every name that ends in a real one.
	elsewhere := build.Context{
		GOOS: "elsewhere", GOARCH: "elsewhere", Compiler: "gc",
		OpenFile: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("package p\n")), nil },
	}
	if ok, err := elsewhere.MatchFile("", name); err != nil || !ok {
		return fmt.Errorf("%q ends in the name of a system, so other systems would not build it; %s", name, hint)
	}
	return nil
}

// findRevisions returns the wanted protocol revisions, oldest first. It returns all released revisions
// if wanted is empty.
func findRevisions(wanted []string) ([]string, error) {
	known := schema.Revisions()
	if len(wanted) == 0 {
		return schema.ReleasedRevisions(), nil
	}
	for _, revision := range wanted {
		if slices.Contains(known, revision) {
			continue
		}
		hint := "known revisions are " + strings.Join(known, ", ")
		if near := diag.Nearest(revision, known); near != "" {
			hint = fmt.Sprintf("did you mean %s? %s", near, hint)
		}
		return nil, fmt.Errorf("%q is not a protocol revision with tasks; %s", revision, hint)
	}
	return slices.DeleteFunc(known, func(revision string) bool { return !slices.Contains(wanted, revision) }), nil
}
