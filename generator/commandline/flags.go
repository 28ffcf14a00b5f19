// Package commandline reads the flags of mcptaskgen that decide what is generated. The command uses
// it for its arguments. Analyzers use it for //go:generate lines.
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

// Flags are the flags that decide what is generated. Call Add, parse the flag set, then call
// Generate. A Flags is not safe for concurrent use.
type Flags struct {
	Config generator.Config      // for packages
	Tools  generator.ToolsConfig // for a server's list of tools
	set    *pflag.FlagSet
}

// Add declares the flags in a set.
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

// ReadsTools reports whether a flag for lists of tools is set. Of these flags, only --tools can be
// used alone.
func (f *Flags) ReadsTools() bool {
	return f.set.Changed("tools") || f.set.Changed("package") || f.set.Changed("service")
}

// Generate returns the files generated from the packages or from the list of tools.
//
// If no flag changes the output and no go generate line started this run, the lines of each package
// decide. Those lines also name the lists of tools to read in its directory.
func (f *Flags) Generate(ctx context.Context, packages []string) (generator.Output, error) {
	if f.ReadsTools() {
		return f.generateTools(packages)
	}
	if !f.changesOutput() && os.Getenv("GOFILE") == "" {
		return f.generateByLines(ctx, packages)
	}
	cfg := f.Config
	cfg.Patterns = packages
	return generator.Generate(ctx, cfg)
}

// changesOutput reports whether a flag changes the generated files.
func (f *Flags) changesOutput() bool {
	return slices.ContainsFunc([]string{"out", "server-only", "client-only", "revision", "schema"}, f.set.Changed)
}

func (f *Flags) generateTools(packages []string) (generator.Output, error) {
	cfg, err := f.toolsConfig(packages)
	if err != nil {
		return generator.Output{}, err
	}
	return generator.GenerateTools(cfg)
}

// toolsConfig checks the flags for a list of tools and returns its configuration.
func (f *Flags) toolsConfig(packages []string) (generator.ToolsConfig, error) {
	cfg := f.Tools
	switch {
	case cfg.File == "":
		return cfg, errors.New("mcptaskgen: --package and --service need --tools; add --tools FILE")
	case len(packages) > 0:
		return cfg, errors.New("mcptaskgen: --tools reads one file and takes no packages; run it once for each file")
	}
	for _, name := range []string{"tags", "schema", "prune"} {
		if f.set.Changed(name) {
			return cfg, fmt.Errorf("mcptaskgen: --%s is for packages and cannot be used with --tools", name)
		}
	}
	cfg.Dir, cfg.Revisions = f.Config.Dir, f.Config.Revisions
	cfg.ServerOnly, cfg.ClientOnly = f.Config.ServerOnly, f.Config.ClientOnly
	if f.set.Changed("out") {
		cfg.Out = f.Config.Output
	}
	return cfg, nil
}
