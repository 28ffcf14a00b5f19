package generator

import (
	"fmt"
	"go/build"
	"io"
	"path/filepath"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
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
