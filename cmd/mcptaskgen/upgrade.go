package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator/upgrade"
)

const upgradeUsage = `mcptaskgen upgrade moves packages to another revision of the protocol, and says what that means.

Usage:
  mcptaskgen upgrade --revision REV [flags] [packages]

Packages are patterns as for go list; the default is the package in the current folder. Each is
generated anew for the revision, with the flags of its //go:generate line. A line that names
revisions names the new one after that; one that names none stays, and means all that are released.
To add a revision and keep what clients speak, name both: --revision 2025-11-25,2026-07-28.

What it prints is Markdown for the pull request: each tool with what changes for it, what is to be
done, what the revision changes for what the tools use, and which files differ:

  mcptaskgen upgrade --revision 2026-07-28 ./... >upgrade.md

Flags:
`

const upgradeAfter = `
Exit codes: 0 when all is well, 1 when --check found that something would change, 2 on errors. Where
anything is wrong nothing is written.
`

func upgradeCommand() command {
	return command{name: "upgrade", usage: upgradeUsage, after: upgradeAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		var cfg upgrade.Config
		flags.StringSliceVar(&cfg.Revisions, "revision", nil, "the `revisions` that the packages are to be generated for, repeated or\ncomma-separated")
		flags.BoolVar(&cfg.Check, "check", false, "write nothing; print the report of what would change")
		flags.StringVar(&cfg.Tags, "tags", "", "build `tags`, comma-separated, as for go build, where the line names none")
		return func(ctx context.Context, i invocation) int {
			cfg.Patterns = i.args
			u, err := upgrade.Plan(ctx, cfg)
			if err != nil {
				return i.printError(err)
			}
			stale, err := u.Stale()
			if err != nil {
				return i.printError(err)
			}
			if !cfg.Check {
				if _, err := u.Write(); err != nil {
					return i.printError(err)
				}
			}
			fmt.Fprint(i.stdout, u.Report)
			if cfg.Check && len(stale) > 0 {
				return exitDifferences
			}
			return exitOK
		}
	}}
}
