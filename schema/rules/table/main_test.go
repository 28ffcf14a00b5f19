package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// records writes records to a file.
func records(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "records")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// table runs the command.
func table(args ...string) (status int, stdout, stderr string) {
	var out, err strings.Builder
	status = run(args, &out, &err)
	return status, out.String(), err.String()
}

// mandatory are records of every rule that -check asks for.
func mandatory(t *testing.T) (lines []string) {
	t.Helper()
	for _, revision := range schema.Revisions() {
		rules, err := schema.Rules(revision)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			if (r.Mandatory() || revision == "task-patterns") && r.NotObservable == "" {
				lines = append(lines, r.ID+" github.com/mcptaskgen/mcptaskgen/runtime.TestAll")
			}
		}
	}
	return lines
}

// row finds a line of the table by its first word, as fields.
func row(text, first string) string {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == first {
			return strings.Join(fields, " ")
		}
	}
	return ""
}

func TestTable(t *testing.T) {
	file := records(t, "C-17 github.com/mcptaskgen/mcptaskgen/runtime.TestB/part", "C-17 github.com/mcptaskgen/mcptaskgen/runtime.TestA",
		"C-17 github.com/mcptaskgen/mcptaskgen/runtime.TestA", "C-05 elsewhere.TestC")
	second := records(t, "E-93 elsewhere.TestD")
	status, out, said := table(file, second)
	if status != 0 || said != "" {
		t.Errorf("status %d: %s", status, said)
	}
	for first, want := range map[string]string{
		"C-17": "C-17 MUST receiver runtime.TestA runtime.TestB/part",
		"C-18": "C-18 SHOULD receiver -",
		"E-93": "E-93 MUST server elsewhere.TestD",
	} {
		if got := row(out, first); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := row(out, "E-10"); !strings.HasPrefix(got, "E-10 SHOULD both not observable: ") {
		t.Errorf("%q", got)
	}
	if n := strings.Count(out, "\nC-"); n != 106 {
		t.Errorf("%d rules of 2025-11-25", n)
	}
	for _, want := range []string{"uncovered: C-18 SHOULD receiver: ", "uncovered: E-96 MUST client: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, not := range []string{"uncovered: C-17 ", "uncovered: E-10 ", "uncovered: E-93 "} {
		if strings.Contains(out, not) {
			t.Errorf("%q in\n%s", not, out)
		}
	}
	// The counts: of each level, and together.
	counts := out[strings.Index(out, "\n2025-11-25  rules")+1:]
	if got := row(counts, "MUST"); got != "MUST 42 1 0 41" {
		t.Errorf("%q", got)
	}
	if got := row(counts, "all"); got != "all 106 2 0 104" {
		t.Errorf("%q", got)
	}
	if got := row(counts, "RULE"); got != "RULE 13 1 0 12" {
		t.Errorf("%q", got)
	}
}

func TestCheck(t *testing.T) {
	all := mandatory(t)
	if status, out, said := table("-check", records(t, all...)); status != 0 || out != "" || said != "" {
		t.Errorf("status %d, said %q, %q", status, out, said)
	}
	// In two files, with a rule of each revision missing.
	var some []string
	seen := map[byte]bool{}
	for _, line := range all {
		if letter := line[0]; seen[letter] { // the first of its revision
			some = append(some, line)
		} else {
			seen[letter] = true
		}
	}
	status, out, said := table("-check", records(t, some[:50]...), records(t, some[50:]...))
	if status != 1 || out != "" || strings.Count(said, "\n") != len(schema.Revisions()) {
		t.Errorf("status %d, said %q, %q", status, out, said)
	}
	for _, want := range []string{"A-01 of sep-1686, a MUST: ", "C-01 of 2025-11-25, a MUST: ", "D-01 of task-patterns, a RULE: "} {
		if !strings.Contains(said, "covers "+want) {
			t.Errorf("nothing on %s in %q", want, said)
		}
	}
}

func TestBadRecords(t *testing.T) {
	for line, want := range map[string]string{
		"C-107 some.Test": "records:1: some.Test covers the unknown rule C-107",
		"c-17 some.Test":  "records:1: some.Test covers the unknown rule c-17",
		"C-17":            `records:1: "C-17" is not a record`,
		"C-17 ":           `records:1: "C-17 " is not a record`,
		"":                `records:1: "" is not a record`,
	} {
		file := records(t, append([]string{line}, mandatory(t)...)...)
		for _, args := range [][]string{{file}, {"-check", file}} {
			if status, out, said := table(args...); status != 1 || out != "" || !strings.Contains(said, want) {
				t.Errorf("%q: status %d, said %q, %q", line, status, out, said)
			}
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for want, args := range map[int][]string{0: {"-h"}, 1: {missing}, 2: {"-check"}} {
		if status, _, said := table(args...); status != want || said == "" {
			t.Errorf("%v: status %d, said %q", args, status, said)
		}
	}
	if status, _, said := table("-nonsense"); status != 2 || !strings.Contains(said, "usage: ") {
		t.Errorf("status %d, said %q", status, said)
	}
}
