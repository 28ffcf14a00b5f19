package main

import (
	"context"
	"errors"

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
Exit codes: 0 when all is well, 1 when --check found a difference, 2 on errors.
`

func docsCommand() command {
	return command{name: "docs", usage: docsUsage, after: docsAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		out := flags.String("out", "", "write to this `file`, if it would change, instead of to standard output")
		check := flags.Bool("check", false, "with --out: write nothing; name the file if it is stale or missing")
		tags := flags.String("tags", "", "build `tags`, comma-separated, as for go build")
		verbose := flags.Bool("verbose", false, "print to standard error how long each step took")
		return func(ctx context.Context, i invocation) int {
			f := generateFlags{verbose: *verbose, check: *check}
			if *check && *out == "" {
				return i.printError(errors.New("mcptaskgen docs: --check needs --out; add --out FILE"))
			}
			text, err := generator.Docs(ctx, generator.Config{Patterns: i.args, Flags: commandline.Flags{Tags: *tags}, Step: f.logSteps(i)})
			if err != nil || *out == "" {
				return i.printText(text, err)
			}
			file, err := generator.DocsFile(*out, text)
			if err != nil {
				return i.printError(err)
			}
			return f.finish(i, file)
		}
	}}
}
