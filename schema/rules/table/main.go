// The table command prints which rules of the specification the tests have seen
// kept, from the records that rules.Covers has written:
//
//	go run ./schema/rules/table [-check] FILE...
//
// Each rule has a line: number, level, whom it binds, and its tests. Below
// stand the counts by level for each revision, and the rules without a test.
// With -check it exits with 1 where one of these is a MUST or a MUST NOT, or any
// rule of an unofficial revision, that is not marked as not observable. A record of a rule that there is not is an
// error at any time.
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
	check := flags.Bool("check", false, "fail where a MUST or MUST NOT has no test; print nothing else")
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
	// whole is for a revision of which every rule needs a test: an unofficial one
	// says MUST where it happens to.
	whole bool
	rules []*rule
}

// isEnforced says whether -check asks for a test of the rule.
func (b book) isEnforced(r *rule) bool { return b.whole || r.Mandatory() }

// rule is a rule with the tests that have seen it kept.
type rule struct {
	schema.Rule
	tests []string
}

// isUncovered says whether the rule could have a test and has none.
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
				faults = append(faults, fmt.Errorf("%s:%d: %q is no record: C-17 import/path.TestName", file, n, lines.Text()))
			case byID[id] == nil:
				faults = append(faults, fmt.Errorf("%s:%d: %s covers %s, and there is no such rule", file, n, test, id))
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

// levels are in the order of their weight.
var levels = []string{"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "RULE"}

// printTable prints the table, the counts and what is not covered.
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
