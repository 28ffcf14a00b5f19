package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

const initUsage = `mcptaskgen init writes a first program for you to change.

Usage:
  mcptaskgen init [dir]

It writes a declaration with a tool that runs as a task, its implementation, a program that serves
the tool over HTTP and calls it, and a test. The default directory is the current one. Then it
prints the commands to run next. After them the program builds and runs as it is.

The directory must be in a module, which go mod init makes. It must hold no Go files: init never
replaces a file.

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
				return i.printError(errors.New("mcptaskgen init takes one directory; see mcptaskgen init --help"))
			}
			dir := "."
			if len(i.args) == 1 {
				dir = i.args[0]
			}
			scaffold, err := generator.NewScaffold(ctx, dir)
			if err != nil {
				return i.printError(err)
			}
			return i.printText(scaffold.Write())
		}
	}}
}
