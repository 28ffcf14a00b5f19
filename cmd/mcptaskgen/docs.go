package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

const docsUsage = `mcptaskgen docs writes a reference of the declared tools as Markdown.

Usage:
  mcptaskgen docs [flags] [packages]

Packages are patterns as for go list. The default is the package in the current directory. For each
service the reference lists the tools: what they do, their arguments, results and policy. A Mermaid
diagram shows the lifecycle of their tasks. The reference changes only if the declarations change.
Commit it beside them, and let go generate keep it up to date:

  //go:generate go tool mcptaskgen
  //go:generate go tool mcptaskgen docs --out TOOLS.md

Flags:
`

const docsAfter = `
Exit codes: 0 when all is well, 2 on errors.
`

func docsCommand() command {
	return command{name: "docs", usage: docsUsage, after: docsAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		out := flags.String("out", "", "write to this `file`, if it would change, instead of to standard output")
		tags := flags.String("tags", "", "build `tags`, comma-separated, as for go build")
		verbose := flags.Bool("verbose", false, "print to standard error how long each step took")
		return func(ctx context.Context, i invocation) int {
			f := generateFlags{verbose: *verbose}
			text, err := generator.Docs(ctx, generator.Config{
				Patterns: i.args, Flags: commandline.Flags{Tags: *tags},
				Step: func(name string, took time.Duration) { f.logVerbose(i, "%-8s %v", name, took.Round(time.Microsecond)) },
			})
			if err != nil {
				return i.printError(err)
			}
			if *out == "" {
				fmt.Fprint(i.stdout, text)
				return exitOK
			}
			if err := generator.WriteDocs(*out, text); err != nil {
				return i.printError(err)
			}
			return exitOK
		}
	}}
}
