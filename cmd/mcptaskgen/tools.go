package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/target"
	"github.com/mcptaskgen/mcptaskgen/generator"
)

const toolsUsage = `mcptaskgen tools records the tools of an MCP server as JSON.

Usage:
  mcptaskgen tools [flags] URL              a server over streamable HTTP
  mcptaskgen tools [flags] -- CMD [ARG]...  a server on the standard input and output of a program

It prints the tools of all pages, in the server's order and as the server describes them, with the
server's name and capabilities. Generate a client or a server from the file:

  mcptaskgen tools --out search.json -- npx -y search-server
  mcptaskgen --tools search.json

Nothing that this command sends is in the output. What the program writes to its standard error
appears here. The command follows no redirects to other servers. To read what a tool does and takes,
run mcptask tools URL TOOL.

Flags:
`

const toolsAfter = `
Exit codes: 0 when all is well, 2 on errors.
`

func toolsCommand() command {
	return command{name: "tools", usage: toolsUsage, after: toolsAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		out := flags.String("out", "", "write to this `file`, if it would change, instead of to standard output")
		var server target.Flags
		server.Bind(flags, "the `revision` of the protocol to speak (default: 2025-11-25, or 2026-07-28\nif the server speaks only that)")
		timeout := flags.Duration("timeout", time.Minute, "how long the server has to answer")
		return func(ctx context.Context, i invocation) int {
			dash := flags.ArgsLenAtDash()
			to, rest, err := server.Read(i.args, dash)
			switch {
			case err == nil && dash == 0: // a later -- is the command's own
				to.Command = i.args
			case err == nil && len(rest) > 0:
				err = fmt.Errorf("%q is one word too many: mcptask tools shows one tool", rest[0])
			}
			if err != nil {
				return i.printError(fmt.Errorf("mcptaskgen tools: %w; see mcptaskgen tools --help", err))
			}
			ctx, cancel := context.WithTimeout(ctx, *timeout)
			defer cancel()
			recorded, err := generator.RecordTools(ctx, generator.RecordConfig{
				URL: to.URL, Header: to.Header, Command: to.Command, Stderr: i.stderr, Revision: to.Revision,
			})
			if err != nil {
				return i.printError(errors.New("mcptaskgen tools: " + removeControls(err.Error())))
			}
			if *out == "" {
				return i.printText(string(recorded), nil)
			}
			return i.printText("", generator.WriteTools(*out, recorded))
		}
	}}
}

// removeControls removes control characters, which could drive a terminal, from an error, which may
// be the server's.
func removeControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
}
