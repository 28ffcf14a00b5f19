package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

const initUsage = `mcptaskgen init writes a first server for you to change.

Usage:
  mcptaskgen init [flags] [dir]

It writes a declaration with a tool that runs as a task, its implementation, a server that keeps its
tasks in a database, a test and a .gitignore. The default directory is the current one. Then it runs
go get -tool if go.mod does not name mcptaskgen and mcptask, go mod tidy and go generate. After that
the server runs as it is, and init prints how to start it and how to call its tool with mcptask.

The directory must be in a module, which go mod init makes. It must hold no Go files: init never
replaces a file. Files that are not Go, such as a .gitignore, stay as they are.

  go mod init example.com/hello
  go run github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@latest init

The templates:

  http      HTTP on 127.0.0.1:8080, tasks in an SQLite file
  bearer    as http, for callers with the token of the environment variable TASKS_TOKEN
  stdio     standard input and output, tasks in an SQLite file
  postgres  HTTP on 127.0.0.1:8080, tasks in the PostgreSQL database of the variable TASKS_DSN
  full      all of these in one program, chosen by flags, and OAuth, the operator's page, metrics,
            traces, a Dockerfile, a compose.yaml and a workflow for GitHub

Flags:
`

const initAfter = `
Exit codes: 0 when all is well, 2 on errors.
`

func initCommand() command {
	return command{name: "init", usage: initUsage, after: initAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		names := generator.ScaffoldTemplates()
		template := flags.String("template", names[0], "write this `program`: "+strings.Join(names, ", "))
		return func(ctx context.Context, i invocation) int {
			if len(i.args) > 1 {
				return i.printError(errors.New("mcptaskgen init takes one directory; see mcptaskgen init --help"))
			}
			dir := "."
			if len(i.args) == 1 {
				dir = i.args[0]
			}
			return i.writeScaffold(ctx, generator.ScaffoldConfig{Dir: dir, Template: *template, Version: ownVersion()})
		}
	}}
}

// writeScaffold writes a first program and makes it ready to run.
func (i invocation) writeScaffold(ctx context.Context, config generator.ScaffoldConfig) int {
	scaffold, err := generator.NewScaffold(ctx, config)
	if err != nil {
		return i.printError(err)
	}
	if err := scaffold.Write(); err != nil {
		return i.printError(err)
	}
	if err := scaffold.Prepare(ctx, func(command string) { fmt.Fprintln(i.stderr, command) }); err != nil {
		return i.printError(err)
	}
	return i.printText(scaffold.Next())
}

// ownVersion returns the version of this program if it is one that a module can require, or "".
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Sum == "" { // built in a checkout
		return ""
	}
	return info.Main.Version
}
