package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

const initUsage = `mcptaskgen init writes a first program, to be changed.

Usage:
  mcptaskgen init [dir]

In the folder, or in the current one, it writes a declaration with a tool that runs as a task, its
implementation, a program that serves it over HTTP and calls it, and a test. They build and run as
they are, once the commands have run that it prints. The folder has to be in a module, which
go mod init makes, and to hold no Go files: what is there is never replaced.

  go mod init example.com/hello
  go run github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@latest init
`

const initAfter = `
Exit codes: 0 when all is well, 2 on errors.
`

func initCommand() command {
	return command{name: "init", usage: initUsage, after: initAfter, bind: func(*pflag.FlagSet) func(context.Context, invocation) int {
		return func(ctx context.Context, i invocation) int {
			if len(i.args) > 1 {
				return i.printError(errors.New("mcptaskgen init takes one folder; see mcptaskgen init --help"))
			}
			dir := "."
			if len(i.args) == 1 {
				dir = i.args[0]
			}
			scaffold, err := generator.NewScaffold(ctx, dir)
			if err != nil {
				return i.printError(err)
			}
			next, err := scaffold.Write()
			if err != nil {
				return i.printError(err)
			}
			fmt.Fprint(i.stdout, next)
			return exitOK
		}
	}}
}
