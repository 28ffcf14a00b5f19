package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

const schemaUsage = `mcptaskgen schema tells what the revisions of MCP say about tasks.

Usage:
  mcptaskgen schema list
  mcptaskgen schema show REVISION
  mcptaskgen schema diff [--json] REVISION REVISION
  mcptaskgen schema verify REVISION FILE...

list has a line for each known revision: its name, its standing, its protocol version and what it is.
Those that are not released are off unless they are named.

show has all of one revision: how tasks work, the states and where they lead, methods with their
params and results, notifications, fields with their units, capabilities, error codes and what is
refused with them.

diff says what changes for a user from the first revision to the second. With --json it is an object
with "from" and "to" (revision, standing, protocolVersion, date and about of each) and "changes", a
list: of each its "section" (aspects, states, methods, notifications, fields, meta, capabilities,
errors, headers, params, definitions or mended), its "kind" (added, removed, renamed, moved or
changed), "means" (a name for the thing that all revisions share), "from" and "to" (names, places or
phrases), which are left out where there is nothing, and "text", a sentence.

verify compares with official schema files, as published, what is known of a revision. Tasks of
2026-07-28 come from two files, that of the extension and that of the core: give both, or one, for
its own part. For a file of a revision that is not known yet, mcptaskgen --schema FILE says what is
new in it and what that means.

Flags:
`

const schemaAfter = `
Exit codes: 0 when all is well, 1 when verify found differences, 2 on errors.
`

func schemaCommand() command {
	return command{name: "schema", usage: schemaUsage, after: schemaAfter, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		asJSON := flags.Bool("json", false, "with diff: write JSON")
		return func(_ context.Context, i invocation) int {
			what, args := "", i.args
			if len(args) > 0 {
				what, args = args[0], args[1:]
			}
			if *asJSON && what != "diff" {
				return i.fail(errors.New("mcptaskgen schema: --json goes with diff"))
			}
			switch {
			case what == "list" && len(args) == 0:
				return i.print(schema.List())
			case what == "show" && len(args) == 1:
				return i.showRevision(args[0])
			case what == "diff" && len(args) == 2:
				return i.diffRevisions(args[0], args[1], *asJSON)
			case what == "verify" && len(args) > 1:
				return i.verifyRevision(args[0], args[1:])
			}
			return i.fail(errors.New("mcptaskgen schema takes list, show REVISION, diff REVISION REVISION or verify REVISION FILE...; see mcptaskgen schema --help"))
		}
	}}
}

// print writes a text that is not there where err is not nil.
func (i invocation) print(text string, err error) int {
	if err != nil {
		return i.fail(err)
	}
	fmt.Fprint(i.stdout, text)
	return ok
}

func (i invocation) showRevision(revision string) int {
	surface, err := schema.Load(revision)
	if err != nil {
		return i.fail(err)
	}
	return i.print(schema.Show(surface))
}

// diffRevisions prints what changes from one revision to another.
func (i invocation) diffRevisions(first, second string, asJSON bool) int {
	from, err := schema.Load(first)
	if err != nil {
		return i.fail(err)
	}
	to, err := schema.Load(second)
	if err != nil {
		return i.fail(err)
	}
	changes, err := schema.Diff(from, to)
	if err != nil {
		return i.fail(err)
	}
	if !asJSON {
		return i.print(schema.Changes(from, to, changes))
	}
	encoder := json.NewEncoder(i.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema.Report(from, to, changes)); err != nil {
		return i.fail(err)
	}
	return ok
}

// verifyRevision lists where official files differ from what is known.
func (i invocation) verifyRevision(revision string, names []string) int {
	explain := "mcptaskgen --schema " + strings.Join(names, " --schema ")
	surface, err := schema.Load(revision)
	if err != nil {
		return i.fail(fmt.Errorf("%w; %s says how a file differs from the nearest of them", err, explain))
	}
	var files []*schema.Document
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return i.fail(err)
		}
		file, err := schema.Parse(data)
		if err != nil {
			return i.fail(fmt.Errorf("%s: %w", name, err))
		}
		files = append(files, file)
	}
	found, notes, err := schema.Verify(surface, files...)
	if err != nil {
		return i.fail(err)
	}
	for _, note := range notes {
		fmt.Fprintln(i.stderr, note)
	}
	for _, difference := range found {
		fmt.Fprintln(i.stdout, difference)
	}
	if len(found) == 0 {
		return ok
	}
	of, err := schema.Of(files...)
	if err != nil {
		return i.fail(err)
	}
	if of == "" {
		fmt.Fprintf(i.stderr, "this is the schema of no known revision: %s says what its differences mean\n", explain)
	} else {
		fmt.Fprintf(i.stderr, "this is the official schema of %s: mcptaskgen schema verify %s %s\n", of, of, strings.Join(names, " "))
	}
	return differences
}
