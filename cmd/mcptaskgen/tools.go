package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/calls"
	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/runtime/terminal"
)

const toolsUsage = `mcptaskgen tools shows the tools of an MCP server, or records them as JSON.

Usage:
  mcptaskgen tools [flags] URL [TOOL]                 a server over streamable HTTP
  mcptaskgen tools [flags] -- CMD [ARG]... [-- TOOL]  a server on the standard input and output of a program

With TOOL it prints what that tool does and which arguments it takes. With --list it prints the names of
all tools. Otherwise it prints the tools of all pages as JSON, in the server's order and as the server
describes them, with the server's name and capabilities. Generate a client or a server from the file:

  mcptaskgen tools --out search.json -- npx -y search-server
  mcptaskgen --tools search.json

Nothing that this command sends is in the output. What the program writes to its standard error
appears here. The command follows no redirects to other servers.

Flags:
`

const toolsAfter = `
Exit codes: 0 when all is well, 2 on errors. With TOOL or --list they are those of mcptaskgen call.
`

func toolsCommand() command {
	return command{name: "tools", usage: toolsUsage, after: toolsAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		out := flags.String("out", "", "write to this `file`, if it would change, instead of to standard output")
		list := flags.Bool("list", false, "print the names and what they do, a line each")
		server := bindServer(flags, "the `revision` of the protocol to speak (default: 2025-11-25, or 2026-07-28\nif the server speaks only that)")
		timeout := flags.Duration("timeout", time.Minute, "how long the server has to answer")
		return func(ctx context.Context, i invocation) int {
			to, rest, err := server.read(i.args, flags.ArgsLenAtDash())
			switch {
			case err != nil:
			case len(rest) > 1:
				err = fmt.Errorf("give one tool, without %q after it", rest[1])
			case (len(rest) > 0 || *list) && *out != "":
				err = errors.New("--out records all tools: give neither a tool nor --list with it")
			case len(rest) > 0 || *list:
				err = checkRevision(to.Revision)
			}
			if err != nil {
				return i.printError(fmt.Errorf("mcptaskgen tools: %w; see mcptaskgen tools --help", err))
			}
			if len(rest) > 0 || *list {
				config := i.attach(calls.Config{Server: to, Format: calls.FormatText, Timeout: *timeout, Quiet: true})
				name := append(rest, "")[0]
				return i.printFailure("tools", config.Format, calls.Describe(context.WithoutCancel(ctx), config, name)) // Ctrl-C ends it by config
			}
			ctx, cancel := context.WithTimeout(ctx, *timeout)
			defer cancel()
			recorded, err := generator.RecordTools(ctx, generator.RecordConfig{
				URL: to.URL, Header: to.Header, Command: to.Command, Stderr: i.stderr, Revision: to.Revision,
			})
			if err != nil {
				return i.printError(fmt.Errorf("mcptaskgen tools: %s", terminal.Printable(err.Error(), true))) // it may be the server's
			}
			if *out == "" {
				return i.printText(string(recorded), nil)
			}
			return i.printText("", generator.WriteTools(*out, recorded))
		}
	}}
}
