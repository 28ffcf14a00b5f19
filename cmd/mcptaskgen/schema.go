package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

const schemaUsage = `mcptaskgen schema prints what the revisions of MCP say about tasks.

Usage:
  mcptaskgen schema list
  mcptaskgen schema show REVISION
  mcptaskgen schema diff [--json] REVISION REVISION
  mcptaskgen schema verify REVISION FILE...

list prints a line for each known revision: its name, its standing, its protocol version and what it
is. A revision that is not released is off unless it is named.

show prints one revision: how tasks work, the states and their transitions, methods with their
params and results, notifications, fields with their units, capabilities, and error codes with what
they refuse.

diff prints what changes for a user from the first revision to the second. With --json it prints an
object. Its "from" and "to" describe the revisions: revision, standing, protocolVersion, date and
about. Its "changes" is a list. Each change has:
  section   aspects (how tasks work), states, methods, notifications, fields, meta, capabilities,
            errors, headers, params, definitions or mended
  kind      added, removed, renamed, moved or changed
  means     a name for the thing that all revisions share
  from, to  names, places or phrases; left out if there is none
  text      a sentence

verify compares published schema files with what is known of a revision. Tasks of 2026-07-28 come
from two files, one of the extension and one of the core. Give both, or one to check its part. For a
file of a revision that is not known yet, mcptaskgen --schema FILE reports what is new in it and what
that means.

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
				return i.printError(errors.New("mcptaskgen schema: --json can only be used with diff"))
			}
			switch {
			case what == "list" && len(args) == 0:
				return i.printText(schema.List())
			case what == "show" && len(args) == 1:
				return i.showRevision(args[0])
			case what == "diff" && len(args) == 2:
				return i.diffRevisions(args[0], args[1], *asJSON)
			case what == "verify" && len(args) > 1:
				return i.verifyRevision(args[0], args[1:])
			}
			return i.printError(errors.New("mcptaskgen schema takes list, show REVISION, diff REVISION REVISION or verify REVISION FILE...; see mcptaskgen schema --help"))
		}
	}}
}

func (i invocation) showRevision(revision string) int {
	surface, err := schema.Load(revision)
	if err != nil {
		return i.printError(err)
	}
	return i.printText(schema.Show(surface))
}

// diffRevisions prints what changes from one revision to another.
func (i invocation) diffRevisions(first, second string, asJSON bool) int {
	from, errFrom := schema.Load(first)
	to, errTo := schema.Load(second)
	if err := cmp.Or(errFrom, errTo); err != nil {
		return i.printError(err)
	}
	changes, err := schema.Diff(from, to)
	if err != nil {
		return i.printError(err)
	}
	if !asJSON {
		return i.printText(schema.Changes(from, to, changes))
	}
	encoder := json.NewEncoder(i.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema.Report(from, to, changes)); err != nil {
		return i.printError(err)
	}
	return exitOK
}

// verifyRevision prints the differences between a known revision and official schema files.
func (i invocation) verifyRevision(revision string, names []string) int {
	explain := "mcptaskgen --schema " + strings.Join(names, " --schema ")
	surface, err := schema.Load(revision)
	if err != nil {
		return i.printError(fmt.Errorf("%w; for the differences from the nearest known revision, run %s", err, explain))
	}
	var files []*schema.Document
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return i.printError(err)
		}
		file, err := schema.Parse(data)
		if err != nil {
			return i.printError(fmt.Errorf("%s: %w", name, err))
		}
		files = append(files, file)
	}
	found, notes, err := schema.Verify(surface, files...)
	if err != nil {
		return i.printError(err)
	}
	if len(found) > 0 {
		of, err := schema.IdentifyRevision(files...)
		if err != nil {
			return i.printError(err)
		}
		if of != "" {
			fmt.Fprintf(i.stderr, "this is the official schema of %s, not of %s: mcptaskgen schema verify %[1]s %[3]s\n", of, revision, strings.Join(names, " "))
			return exitDifferences
		}
	}
	for _, note := range notes {
		fmt.Fprintln(i.stderr, note)
	}
	if len(found) == 0 {
		return exitOK
	}
	for _, difference := range found {
		fmt.Fprintln(i.stdout, difference)
	}
	fmt.Fprintf(i.stderr, "this is not the schema of a known revision: %s explains the differences\n", explain)
	return exitDifferences
}
