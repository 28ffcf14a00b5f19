package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

const generateUsage = `mcptaskgen generates MCP tool servers and clients, with tasks, from Go interfaces.

Usage:
  mcptaskgen [flags] [packages]       generate, or with --check or --diff compare
  mcptaskgen init [dir]               begin: write a declaration, a server, a client and a test
  mcptaskgen docs [flags] [packages]  print the reference of the declared tools as Markdown
  mcptaskgen schema ...               tell what the revisions of MCP say about tasks
  mcptaskgen upgrade [flags] [packages]
                                      generate for another revision, and report what changes
  mcptaskgen help [command]           say more about a command

Packages are patterns as for go list; the default is the package in the current folder. Mark an
interface in it, and every method becomes a tool:

  //go:generate go tool mcptaskgen

  // CI runs continuous-integration jobs.
  //
  //mcptask:service fallback=tools
  type CI interface {
          // RunPipeline builds and tests one branch of a repository.
          //
          //mcptask:tool task=required ttl=24h
          RunPipeline(ctx context.Context, task *mcptask.Task, in RunInput) (RunReport, error)
  }

Then run go generate. Beside the declaration stands ` + generator.OutputName + `, with CITools for the
server and CIClient for its callers. Commit it; --check tells whether it is up to date.

The line for go generate is the one above where go.mod names the tool, which this does:

  go get -tool github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@latest

With an installed mcptaskgen it is //go:generate mcptaskgen.

For a server that somebody else wrote, in whatever language, give what it answers to tools/list:

  mcptaskgen --tools search.json

It writes search_gen.go: the types of its tools' inputs and outputs, the interface Search and
SearchClient, which calls them.

Run by hand and with none of --out, --server-only, --client-only, --revision, --schema and --tools,
mcptaskgen does what the lines for go generate of each package say, lists of tools included: so
mcptaskgen --check ./... compares every generated file of a module with what its own line makes.

Flags:
`

const generateAfter = `
Nothing is written where anything is wrong, a file that would stay the same is not touched, and
only files that begin as generated ones do are ever removed.
` + exitCodes

// generateFlags are the flags of the command without a subcommand.
type generateFlags struct {
	check, diff, prune bool
	output             commandline.Flags
	verbose, version   bool
}

func generateCommand() command {
	return command{usage: generateUsage, after: generateAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		var f generateFlags
		flags.BoolVar(&f.check, "check", false, "write nothing; list files that are stale, missing or left over")
		flags.BoolVar(&f.diff, "diff", false, "write nothing; print what would change, and left-over files as removed,\nas a unified diff")
		flags.BoolVar(&f.prune, "prune", false, "remove generated files that this run does not produce any more;\nwithout it they are named and stay")
		f.output.Add(flags)
		flags.BoolVar(&f.verbose, "verbose", false, "say on standard error how long each step took and what was written")
		flags.BoolVar(&f.version, "version", false, "print the version")
		return f.run
	}}
}

func (f *generateFlags) run(ctx context.Context, i invocation) int {
	if f.version {
		fmt.Fprintln(i.stdout, "mcptaskgen", moduleVersion())
		return exitOK
	}
	for _, arg := range i.args {
		for _, c := range namedCommands() {
			if arg == c.name {
				return i.printError(fmt.Errorf("the command comes first: mcptaskgen %s; to name a package, write ./%[1]s", arg))
			}
		}
	}
	step := func(name string, took time.Duration) { f.logVerbose(i, "%-8s %v", name, took.Round(time.Microsecond)) }
	f.output.Config.Step = step
	out, err := f.output.Generate(ctx, i.args)
	if err != nil {
		return i.printError(err)
	}
	fmt.Fprint(i.stderr, out.Notes)
	begin := time.Now()
	if f.check || f.diff {
		defer func() { step("compare", time.Since(begin)) }()
		return f.compareFiles(i, out)
	}
	defer func() { step("write", time.Since(begin)) }()
	return f.writeFiles(i, out)
}

// logVerbose prints a line to standard error if --verbose is set.
func (f *generateFlags) logVerbose(i invocation, format string, args ...any) {
	if f.verbose {
		fmt.Fprintf(i.stderr, "mcptaskgen: "+format+"\n", args...)
	}
}

// compareFiles prints the files that are not up to date, or a diff of them.
func (f *generateFlags) compareFiles(i invocation, out generator.Output) int {
	stale, err := out.Stale()
	if err != nil {
		return i.printError(err)
	}
	if f.diff {
		text, err := out.Diff()
		if err != nil {
			return i.printError(err)
		}
		fmt.Fprint(i.stdout, text)
	} else {
		for _, path := range stale {
			fmt.Fprintln(i.stdout, path)
		}
	}
	if len(stale) == 0 {
		return exitOK
	}
	return exitDifferences
}

func (f *generateFlags) writeFiles(i invocation, out generator.Output) int {
	written, err := out.Write()
	for _, path := range written {
		f.logVerbose(i, "wrote %s", path)
	}
	if err != nil {
		return i.printError(err)
	}
	if !f.prune {
		for _, path := range out.ShownLeftOver() {
			fmt.Fprintf(i.stderr, "mcptaskgen: this run does not produce %s; remove it with --prune\n", path)
		}
		return exitOK
	}
	removed, err := out.Prune()
	for _, path := range removed {
		f.logVerbose(i, "removed %s", path)
	}
	if err != nil {
		return i.printError(err)
	}
	return exitOK
}

// moduleVersion returns the module version that the go command recorded in the binary.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
