package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

const schemaUsage = `mcptaskgen schema lists the known revisions of MCP, and compares their schemas.

Usage:
  mcptaskgen schema list
  mcptaskgen schema diff SCHEMA SCHEMA

list prints a line for each known revision: its name, its standing, its protocol version and what it
is. A revision that is not released is off unless it is named.

diff prints what differs from the first schema to the second, one line each: a JSON pointer; added,
removed or changed; and the old and the new value. SCHEMA is a known revision, or a published schema file.
Tasks of 2026-07-28 come from two files, one of the extension and one of the core: separate them by a
comma, or give that of the extension alone. Between a revision and a file, diff compares what concerns
tasks. Descriptions, the order of things and the names of definitions do not count. An object that one
schema writes out and the other puts together with allOf counts as different.

  mcptaskgen schema diff 2025-11-25 2026-07-28
  mcptaskgen schema diff 2025-11-25 schema.json
`

const schemaAfter = `
Exit codes: 0 when all is well, 1 when diff found differences, 2 on errors.
`

func schemaCommand() command {
	return command{name: "schema", usage: schemaUsage, after: schemaAfter, bind: func(*pflag.FlagSet) func(context.Context, invocation) int {
		return func(_ context.Context, i invocation) int {
			switch args := i.args; {
			case len(args) == 1 && args[0] == "list":
				return i.listRevisions()
			case len(args) == 3 && args[0] == "diff":
				return i.diffSchemas(args[1], args[2])
			}
			return i.printError(errors.New("mcptaskgen schema takes list or diff SCHEMA SCHEMA; see mcptaskgen schema --help"))
		}
	}}
}

func (i invocation) listRevisions() int {
	for _, revision := range schema.Revisions() {
		s, err := schema.Load(revision)
		if err != nil {
			return i.printError(err)
		}
		fmt.Fprintf(i.stdout, "%-13s  %-17s  %-13s  %s\n", s.Revision, s.Standing, cmp.Or(s.ProtocolVersion, "-"), s.About)
	}
	return exitOK
}

func (i invocation) diffSchemas(from, to string) int {
	differences, err := generator.DiffSchemas("", from, to)
	if err != nil {
		return i.printError(err)
	}
	for _, d := range differences {
		fmt.Fprintln(i.stdout, d)
	}
	if len(differences) > 0 {
		return exitDifferences
	}
	return exitOK
}
