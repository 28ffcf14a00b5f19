package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

const generateUsage = `mcptaskgen generates MCP tool servers and clients, with tasks, from Go interfaces.

Usage:
  mcptaskgen [flags] [packages]       generate; with --check, only compare
  mcptaskgen init [flags] [dir]       write a first declaration, server and test
  mcptaskgen tools [flags] URL        record the list of tools of an MCP server
  mcptaskgen docs [flags] [packages]  print a reference of the declared tools as Markdown
  mcptaskgen breaking --against REF|DIR [packages]
                                      say what breaks callers and stored tasks
  mcptaskgen schema ...               list the revisions of MCP, or compare their schemas
  mcptaskgen upgrade [flags] [packages]
                                      generate for another revision
  mcptaskgen version                  print what this program was built from
  mcptaskgen help [command]           print the help of a command

Packages are patterns as for go list. The default is the package in the current directory. Mark an
interface in it, and every method becomes a tool:

  //go:generate go tool mcptaskgen

  // CI runs continuous-integration jobs.
  //
  //mcptask:service
  type CI interface {
          // RunPipeline builds and tests one branch of a repository.
          //
          //mcptask:tool task=required ttl=24h
          RunPipeline(ctx context.Context, task *mcptask.Task, in RunInput) (RunReport, error)
  }

Then run go generate. It writes ` + generator.OutputName + ` beside the declaration, with CITools for the
server and CIClient for its callers. Commit that file. --check reports whether it is up to date.

The //go:generate line above needs the tool in go.mod. This adds it:

  go get -tool github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@latest

If mcptaskgen is installed, write //go:generate mcptaskgen instead.

To call a server that someone else wrote, in any language, record its list of tools and run:

  mcptaskgen tools --out search.json -- node server.js
  mcptaskgen --tools search.json

This writes search_gen.go. It has the types of the tools' inputs and outputs, and SearchClient, which
calls the tools. It also has SearchTools, which serves an implementation of the list in Go, or a fake.

The first line of a generated file records its flags. Without --out, --server-only, --client-only,
--revision, --schema and --tools, a run by hand uses them again. A package's own //go:generate lines go
before them, those with --tools or docs included. So mcptaskgen --check ./... compares every generated
file of a module.

To call tools at a terminal, run mcptask.

Flags:
`

const generateAfter = `
If anything is wrong, nothing is written. A file that would not change is not touched. Only files
that begin like generated files are ever removed.
` + exitCodes

// generateFlags are the flags of the command without a subcommand.
type generateFlags struct {
	flags                   commandline.Flags
	check, verbose, version bool
	breaking                breakingFlags
}

func generateCommand() command {
	return command{usage: generateUsage, after: generateAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		var f generateFlags
		flags.BoolVar(&f.check, "check", false, "write nothing; list the files that are stale, missing or left over,\nand say on standard error why and what to run")
		flags.StringVar(&f.breaking.cfg.Against, "against", "", "with --check, do what mcptaskgen breaking does too")
		flags.StringArrayVar(&f.breaking.cfg.Allow, "allow", nil, "with --against, allow the findings of a rule; may be repeated")
		f.flags.Add(flags)
		flags.BoolVar(&f.verbose, "verbose", false, "say on standard error how long each step took and what was written")
		flags.BoolVar(&f.version, "version", false, "do what mcptaskgen version does")
		return f.run
	}}
}

func (f *generateFlags) run(ctx context.Context, i invocation) int {
	if f.version {
		return i.printVersion()
	}
	for _, arg := range i.args {
		if slices.Contains(commandNames(), arg) {
			return i.printError(fmt.Errorf("the command comes first: mcptaskgen %s; to name a package, write ./%[1]s", arg))
		}
	}
	if f.breaking.cfg.Against != "" && !f.check {
		return i.printError(errors.New("mcptaskgen: --against compares, and writes nothing; add --check, or run mcptaskgen breaking --against " + f.breaking.cfg.Against))
	}
	if len(f.breaking.cfg.Allow) > 0 && f.breaking.cfg.Against == "" {
		return i.printError(errors.New("mcptaskgen: --allow needs --against; add --check --against git:REF"))
	}
	if err := f.flags.Check(i.args); err != nil {
		return i.printError(fmt.Errorf("mcptaskgen: %w", err))
	}
	out, err := generator.Generate(ctx, generator.Config{
		Patterns: i.args, Flags: f.flags, Step: f.logSteps(i), Removed: f.breaking.cfg.Against != "",
		Own: !f.flags.ChangesFile() && os.Getenv("GOFILE") == "", // go generate sets it, and gives the flags of its line
	})
	if err != nil {
		return i.printError(err)
	}
	for _, note := range out.Notes {
		fmt.Fprintln(i.stderr, note)
	}
	code := f.finish(i, out)
	if f.breaking.cfg.Against != "" {
		code = max(code, f.breaking.report(ctx, i, out))
	}
	return code
}

// finish writes or compares the files.
func (f *generateFlags) finish(i invocation, out generator.Output) int {
	name, do, begin := "write", f.writeFiles, time.Now()
	if f.check {
		name, do = "compare", f.compareFiles
	}
	code := do(i, out)
	f.logSteps(i)(name, time.Since(begin))
	return code
}

// logSteps returns a function that prints the duration of a step if --verbose is set.
func (f *generateFlags) logSteps(i invocation) func(string, time.Duration) {
	return func(name string, took time.Duration) { f.logVerbose(i, "%-8s %v", name, took.Round(time.Microsecond)) }
}

func (f *generateFlags) logVerbose(i invocation, format string, args ...any) {
	if f.verbose {
		fmt.Fprintf(i.stderr, "mcptaskgen: "+format+"\n", args...)
	}
}

// compareFiles prints the files that are not up to date.
func (f *generateFlags) compareFiles(i invocation, out generator.Output) int {
	differences, err := out.Compare()
	if err != nil {
		return i.printError(err)
	}
	for _, d := range differences {
		fmt.Fprintln(i.stdout, d.Path)
		fmt.Fprintf(i.stderr, "mcptaskgen: %s\n", d)
	}
	if len(differences) == 0 {
		return exitOK
	}
	return exitDifferences
}

func (f *generateFlags) writeFiles(i invocation, out generator.Output) int {
	isNew := map[string]bool{}
	for path := range out.Files {
		_, err := os.Stat(filepath.Join(out.Dir, filepath.FromSlash(path)))
		isNew[path] = errors.Is(err, fs.ErrNotExist)
	}
	written, err := out.Write()
	for _, path := range written {
		if isNew[path] {
			fmt.Fprintf(i.stderr, "mcptaskgen: created %s\n", path)
			continue
		}
		f.logVerbose(i, "wrote %s", path)
	}
	if err != nil {
		return i.printError(err)
	}
	for _, d := range out.LeftOver {
		fmt.Fprintf(i.stderr, "mcptaskgen: %s\n", d)
	}
	return exitOK
}
