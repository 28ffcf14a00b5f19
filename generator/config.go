package generator

import (
	"errors"
	"fmt"
	"go/build"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

func (cfg Config) output() string {
	if cfg.Output == "" {
		return OutputName
	}
	return cfg.Output
}

func (cfg Config) side() model.Side {
	switch {
	case cfg.ServerOnly:
		return model.ServerSide
	case cfg.ClientOnly:
		return model.ClientSide
	}
	return model.Both
}

// step begins a step; the function that it returns ends it.
func (cfg Config) step(name string) (end func()) {
	if cfg.Step == nil {
		return func() {}
	}
	begin := time.Now()
	return func() { cfg.Step(name, time.Since(begin)) }
}

// check refuses what asks for no file, or for one that cannot be.
func (cfg Config) check() error {
	if cfg.ServerOnly && cfg.ClientOnly {
		return errors.New("a file for the server only and for the client only has nothing in it; leave one of the two out")
	}
	return checkOutputName(cfg.output())
}

// checkOutputName refuses what is no name of a file beside the declarations that every build of the
// package reads.
func checkOutputName(name string) error {
	const hint = "it is the name of a Go file beside the declarations, such as " + OutputName
	switch {
	case name != filepath.Base(name) || strings.ContainsAny(name, `/\`):
		return fmt.Errorf("%q is a path; %s", name, hint)
	case filepath.Ext(name) != ".go" || strings.ContainsAny(name[:1], "._"):
		return fmt.Errorf("the go command does not read a file %q; %s", name, hint)
	case strings.HasSuffix(name, "_test.go"):
		return fmt.Errorf("%q is the name of a test file; %s", name, hint)
	}
	// Elsewhere is no system that a name could end in, so that one which ends in any is left out.
	elsewhere := build.Context{
		GOOS: "elsewhere", GOARCH: "elsewhere", Compiler: "gc",
		OpenFile: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("package p\n")), nil },
	}
	if ok, err := elsewhere.MatchFile("", name); err != nil || !ok {
		return fmt.Errorf("%q is built for one system only, which the end of its name says; %s", name, hint)
	}
	return nil
}

// Revisions returns the wanted revisions of the protocol, the oldest first; all released ones
// where none is wanted.
func Revisions(wanted []string) ([]string, error) {
	known := schema.Revisions()
	if len(wanted) == 0 {
		return schema.ReleasedRevisions(), nil
	}
	for _, revision := range wanted {
		if slices.Contains(known, revision) {
			continue
		}
		hint := "the known ones are " + strings.Join(known, ", ")
		if near := diag.Nearest(revision, known); near != "" {
			hint = fmt.Sprintf("did you mean %s? %s", near, hint)
		}
		return nil, fmt.Errorf("%q is no revision of the protocol that has tasks; %s", revision, hint)
	}
	return slices.DeleteFunc(known, func(revision string) bool { return !slices.Contains(wanted, revision) }), nil
}
