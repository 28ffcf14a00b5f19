// The table command prints which rules of the specification the tests cover, from the records that
// rules.Covers wrote:
//
//	go run ./schema/rules/table [-check] FILE...
//
// Each rule has a line with its number, level, actor and tests. The counts by level for each
// revision and the rules without a test follow. With -check, the command exits with 1 if a rule
// that needs a test has none. These are the rules with MUST or MUST NOT and all rules of unofficial
// revisions, unless they are marked as not observable. A record of an unknown rule is always an
// error.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "fail if a MUST or MUST NOT has no test; print nothing else")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: go run ./schema/rules/table [-check] FILE...")
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() == 0:
		flags.Usage()
		return 2
	}
	books, err := loadBooks()
	if err == nil {
		err = readRecords(books, flags.Args())
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if !*check {
		if err := printTable(stdout, books); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		return 0
	}
	status := 0
	for _, b := range books {
		for _, r := range b.rules {
			if r.isUncovered() && b.isEnforced(r) {
				fmt.Fprintf(stderr, "no test that ran covers %s of %s, a %s: %s: %s\n", r.ID, b.revision, r.Level, r.Actor, r.Text)
				status = 1
			}
		}
	}
	return status
}

// book is the rule book of a revision.
type book struct {
	revision string
	// whole means that every rule needs a test. It is set for unofficial revisions, which use MUST
	// inconsistently.
	whole bool
	rules []*rule
}

// isEnforced reports whether -check requires a test of the rule.
func (b book) isEnforced(r *rule) bool { return b.whole || r.Mandatory() }

// rule is a rule with the tests that cover it.
type rule struct {
	schema.Rule
	tests []string
}

// isUncovered reports whether the rule needs a test and has none.
func (r *rule) isUncovered() bool { return len(r.tests) == 0 && r.NotObservable == "" }

func loadBooks() ([]book, error) {
	var books []book
	for _, revision := range schema.Revisions() {
		rules, err := schema.Rules(revision)
		if err != nil {
			return nil, err
		}
		surface, err := schema.Load(revision)
		if err != nil {
			return nil, err
		}
		b := book{revision: revision, whole: surface.Standing == schema.Unofficial}
		for _, r := range rules {
			b.rules = append(b.rules, &rule{Rule: r})
		}
		books = append(books, b)
	}
	return books, nil
}

// readRecords adds the tests that the records name.
func readRecords(books []book, files []string) error {
	byID := map[string]*rule{}
	for _, b := range books {
		for _, r := range b.rules {
			byID[r.ID] = r
		}
	}
	var faults []error
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(strings.NewReader(string(data)))
		for n := 1; lines.Scan(); n++ {
			id, test, ok := strings.Cut(lines.Text(), " ")
			switch {
			case !ok || test == "":
				faults = append(faults, fmt.Errorf("%s:%d: %q is not a record such as C-17 import/path.TestName", file, n, lines.Text()))
			case byID[id] == nil:
				faults = append(faults, fmt.Errorf("%s:%d: %s covers the unknown rule %s", file, n, test, id))
			default:
				byID[id].tests = append(byID[id].tests, strings.TrimPrefix(test, "github.com/mcptaskgen/mcptaskgen/"))
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, r := range byID {
		slices.Sort(r.tests)
		r.tests = slices.Compact(r.tests)
	}
	return errors.Join(faults...)
}

// levels are sorted by importance.
var levels = []string{"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "RULE"}

// printTable prints the table, the counts and the uncovered rules.
func printTable(out io.Writer, books []book) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, b := range books {
		fmt.Fprintf(w, "%s\n\n", b.revision)
		for _, r := range b.rules {
			tests := strings.Join(r.tests, " ")
			switch {
			case r.NotObservable != "":
				tests = "not observable: " + r.NotObservable
			case tests == "":
				tests = "-"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.ID, r.Level, r.Actor, tests)
		}
		fmt.Fprintln(w)
	}
	for _, b := range books {
		fmt.Fprintf(w, "%s\trules\tcovered\tnot observable\tuncovered\n", b.revision)
		for _, level := range append(levels, "all") {
			var rules, covered, marked, open int
			for _, r := range b.rules {
				switch {
				case level != "all" && r.Level != level:
					continue
				case r.isUncovered():
					open++
				case r.NotObservable != "":
					marked++
				default:
					covered++
				}
				rules++
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", level, rules, covered, marked, open)
		}
		fmt.Fprintln(w)
	}
	for _, b := range books {
		for _, level := range levels {
			for _, r := range b.rules {
				if r.isUncovered() && r.Level == level {
					fmt.Fprintf(w, "uncovered: %s %s %s: %s\n", r.ID, r.Level, r.Actor, r.Text)
				}
			}
		}
	}
	return w.Flush()
}
