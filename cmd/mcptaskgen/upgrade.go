package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

const upgradeUsage = `mcptaskgen upgrade moves packages to another revision of the protocol.

Usage:
  mcptaskgen upgrade --revision REV [flags] [packages]

Packages are patterns as for go list. The default is the package in the current directory. upgrade
generates each package again for the revision, with the flags of its //go:generate line, or else with
those in the first line of its generated file. If they name revisions, upgrade replaces them, in the
line too, and --schema as well, which names the revision of a file. Flags that name none stay: they mean
all released revisions. To add a revision and keep the one that clients speak, name both: --revision
2025-11-25,2026-07-28. Clients of lists of tools stay as they are: record the list again.

upgrade prints the files that it changes. On standard error, it says what is left to do by hand.
mcptaskgen schema diff lists what differs between two revisions.

Flags:
`

const upgradeAfter = `
Exit codes: 0 when all is well, 1 when --check found that something would change, 2 on errors. If
anything is wrong, nothing is written.
`

func upgradeCommand() command {
	return command{name: "upgrade", usage: upgradeUsage, after: upgradeAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		var cfg generator.UpgradeConfig
		flags.StringSliceVar(&cfg.Revisions, "revision", nil, "the `revisions` to generate the packages for, repeated or comma-separated")
		check := flags.Bool("check", false, "write nothing; print the files that would change")
		flags.StringVar(&cfg.Tags, "tags", "", "build `tags`, comma-separated, as for go build, if the flags of a package name none")
		return func(ctx context.Context, i invocation) int {
			cfg.Patterns = i.args
			out, err := generator.PlanUpgrade(ctx, cfg)
			if err != nil {
				return i.printError(err)
			}
			differences, err := out.Compare()
			if err != nil {
				return i.printError(err)
			}
			if !*check {
				if _, err := out.Write(); err != nil {
					return i.printError(err)
				}
			}
			for _, d := range differences {
				fmt.Fprintln(i.stdout, d.Path)
			}
			for _, note := range out.Notes {
				fmt.Fprintln(i.stderr, note)
			}
			if *check && len(differences) > 0 {
				return exitDifferences
			}
			return exitOK
		}
	}}
}
