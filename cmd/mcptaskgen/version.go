package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/build"
)

const versionUsage = `mcptaskgen version prints what this program was built from, for reports of problems.

Usage:
  mcptaskgen version

It prints the version of the module, the commit if the program was built in a checkout, and the
version of Go. mcptaskgen --version does the same.
`

func versionCommand() command {
	return command{name: "version", usage: versionUsage, bind: func(*pflag.FlagSet) func(context.Context, invocation) int {
		return func(_ context.Context, i invocation) int { return i.printVersion() }
	}}
}

func (i invocation) printVersion() int {
	return i.printText(build.Describe("mcptaskgen"), nil)
}
