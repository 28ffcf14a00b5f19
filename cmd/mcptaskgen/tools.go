package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

const toolsUsage = `mcptaskgen tools records the list of tools of an MCP server as JSON.

Usage:
  mcptaskgen tools [flags] URL             a server over streamable HTTP
  mcptaskgen tools [flags] -- CMD [ARG]... a server on the standard input and output of a program

It prints the tools of all pages in the server's order, as the server describes them, with the
server's name and capabilities. Generate a client or a server from the file:

  mcptaskgen tools --out search.json -- npx -y search-server
  mcptaskgen --tools search.json

Nothing that this command sends is in the output. What the program writes to its standard error
appears here. The command follows no redirects.

Flags:
`

const toolsAfter = `
Exit codes: 0 when all is well, 2 on errors.
`

func toolsCommand() command {
	return command{name: "tools", usage: toolsUsage, after: toolsAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		out := flags.String("out", "", "write to this `file`, if it would change, instead of to standard output")
		header := flags.StringArray("header", nil, "send this `header` to the URL, as \"Name: value\"; may be repeated")
		token := flags.String("token-env", "", "send the value of this environment `variable` to the URL as a bearer token")
		revision := flags.String("revision", "", "the `revision` of the protocol to speak (default: 2025-11-25, or 2026-07-28\nif the server speaks only that)")
		timeout := flags.Duration("timeout", time.Minute, "how long the server has to answer")
		return func(ctx context.Context, i invocation) int {
			cfg := generator.RecordConfig{Stderr: i.stderr, Revision: *revision}
			err := setServer(&cfg, i.args, flags.ArgsLenAtDash())
			if err == nil {
				err = setHeader(&cfg, *header, *token)
			}
			if err != nil {
				return i.printError(fmt.Errorf("mcptaskgen tools: %w", err))
			}
			ctx, cancel := context.WithTimeout(ctx, *timeout)
			defer cancel()
			list, err := generator.RecordTools(ctx, cfg)
			if err != nil {
				return i.printError(fmt.Errorf("mcptaskgen tools: %w", err))
			}
			if *out == "" {
				return i.printText(string(list), nil)
			}
			return i.printText("", generator.WriteTools(*out, list))
		}
	}}
}

// setServer reads the arguments. dash is the number of arguments before --, or -1.
func setServer(cfg *generator.RecordConfig, args []string, dash int) error {
	switch {
	case dash == 0 && len(args) > 0:
		cfg.Command = args
		return nil
	case dash > 0 || len(args) == 0:
		return errors.New("give either a URL, or -- and a command; see mcptaskgen tools --help")
	}
	u, err := url.Parse(args[0])
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is not a URL; to start a program, write -- before it", args[0])
	case len(args) > 1:
		return fmt.Errorf("give one URL, without %q after it", args[1])
	case u.User != nil:
		return errors.New("give what the URL has before @ with --header \"Authorization: ...\"")
	}
	cfg.URL = args[0]
	return nil
}

// setHeader reads the flags for the header of requests.
func setHeader(cfg *generator.RecordConfig, lines []string, tokenVariable string) error {
	if cfg.URL == "" {
		if len(lines) > 0 || tokenVariable != "" {
			return errors.New("--header and --token-env are for a URL; a program reads its own environment")
		}
		return nil
	}
	cfg.Header = http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return errors.New("a --header is not of the form \"Name: value\"") // the value may be a secret
		}
		cfg.Header.Add(name, strings.TrimSpace(value))
	}
	if tokenVariable == "" {
		return nil
	}
	token := strings.TrimSpace(os.Getenv(tokenVariable))
	if token == "" {
		return fmt.Errorf("the environment variable %s is empty", tokenVariable)
	}
	cfg.Header.Set("Authorization", "Bearer "+token)
	return nil
}
