// Package commandline is what the command line of mcptaskgen says of the files that it makes. The
// command reads it, and so do analyzers, off the lines for go generate.
package commandline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// Flags are the flags that say what is generated. Add them to a set, parse it, then call Generate.
// A Flags is not safe for concurrent use.
type Flags struct {
	Config generator.Config      // for packages
	Tools  generator.ToolsConfig // for a server's list of tools
	set    *pflag.FlagSet
}

// Add declares the flags.
func (f *Flags) Add(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.Config.Output, "out", generator.OutputName, "the `name` of the generated file in each package; with --tools, the file to\nwrite, which is otherwise named after the list")
	set.BoolVar(&f.Config.ServerOnly, "server-only", false, "leave the client out")
	set.BoolVar(&f.Config.ClientOnly, "client-only", false, "leave the server out")
	set.StringSliceVar(&f.Config.Revisions, "revision", nil,
		"the `revisions` of the protocol that the server declares tasks in,\nrepeated or comma-separated (default "+strings.Join(schema.ReleasedRevisions(), ",")+")")
	set.StringArrayVar(&f.Config.Schemas, "schema", nil,
		"a published schema `file` of MCP, repeated if a revision has several: generate\nfor its revision, or report what is new in it and not supported")
	set.StringVar(&f.Config.Tags, "tags", "", "build `tags`, comma-separated, as for go build")
	set.StringVar(&f.Tools.File, "tools", "", "generate a client from this `file`, a server's answer to tools/list")
	set.StringVar(&f.Tools.Package, "package", "", "with --tools: the `name` of its package (default: that of the files\nbeside it)")
	set.StringVar(&f.Tools.Service, "service", "", "with --tools: the `name` of the interface (default: named after the\nserver or the file)")
}

// ReadsTools tells whether the flags are for a list of tools: alone, one of them is a mistake.
func (f *Flags) ReadsTools() bool {
	return f.set.Changed("tools") || f.set.Changed("package") || f.set.Changed("service")
}

// Generate returns what the generated files should be, of the packages or of the list of tools. Where no
// flag says what they should be like, and no line for go generate has this run, each package's own lines
// say it: also which lists of tools are read in its folder.
func (f *Flags) Generate(ctx context.Context, packages []string) (generator.Output, error) {
	if f.ReadsTools() {
		return f.generateTools(packages)
	}
	if !f.shapes() && os.Getenv("GOFILE") == "" {
		return f.generateOwn(ctx, packages)
	}
	cfg := f.Config
	cfg.Patterns = packages
	return generator.Generate(ctx, cfg)
}

// shapes tells whether a flag says what generated files are like.
func (f *Flags) shapes() bool {
	return slices.ContainsFunc([]string{"out", "server-only", "client-only", "revision", "schema"}, f.set.Changed)
}

func (f *Flags) generateTools(packages []string) (generator.Output, error) {
	cfg, err := f.toolsConfig(packages)
	if err != nil {
		return generator.Output{}, err
	}
	return generator.GenerateTools(cfg)
}

// toolsConfig says what is made of a list of tools.
func (f *Flags) toolsConfig(packages []string) (generator.ToolsConfig, error) {
	cfg := f.Tools
	switch {
	case cfg.File == "":
		return cfg, errors.New("mcptaskgen: --package and --service say what --tools makes; give it too")
	case len(packages) > 0:
		return cfg, errors.New("mcptaskgen: --tools reads one file and no packages; run it for each file")
	}
	for _, name := range []string{"tags", "server-only", "client-only", "revision", "schema", "prune"} {
		if f.set.Changed(name) {
			return cfg, fmt.Errorf("mcptaskgen: --%s is for packages; --tools reads none", name)
		}
	}
	cfg.Dir = f.Config.Dir
	if f.set.Changed("out") {
		cfg.Out = f.Config.Output
	}
	return cfg, nil
}
