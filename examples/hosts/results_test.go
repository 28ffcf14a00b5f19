package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the clients did into testdata/results.tsv and docs/connect-clients.md")

// The cases, in the order of the table's columns. TestHosts describes each.
var cases = []string{"list", "quick", "long", "task", "question", "sampling", "cancel", "restart"}

// The ways in which a case ends.
const (
	works    = "works"
	fallback = "fallback" // works through the fallback tools
	cannot   = "cannot"   // the client cannot, and the note has its output or its behavior
	fails    = "fails"    // the note names the side at fault
)

// row is the result of one client in one case.
type row struct {
	client, version, over, revision, name, outcome, note string
}

// fields are the columns of a row in the file.
func (r *row) fields() []*string {
	return []*string{&r.client, &r.version, &r.over, &r.revision, &r.name, &r.outcome, &r.note}
}

// route returns the columns that the rows of one line of the table share.
func (r *row) route() [4]string { return [4]string{r.client, r.version, r.over, r.revision} }

const (
	resultsFile = "testdata/results.tsv"
	tableFile   = "../../docs/connect-clients.md"
	tableBegin  = "<!-- What follows is generated from examples/hosts/testdata/results.tsv: make hosts ARGS=-update -->\n"
	tableEnd    = "<!-- The end of what is generated. -->\n"
	hint        = "run make hosts ARGS=-update and read the difference"
)

// readResults reads the committed rows.
func readResults(t *testing.T) []row {
	t.Helper()
	data, err := os.ReadFile(resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for line := range strings.Lines(string(data)) {
		var r row
		fields, values := r.fields(), strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(values) != len(fields) {
			t.Fatalf("%s: %d columns, want %d in %q", resultsFile, len(values), len(fields), line)
		}
		for i, field := range fields {
			*field = values[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// writeResults writes the rows, and the table of the document.
func writeResults(t *testing.T, rows []row) {
	t.Helper()
	var out strings.Builder
	for _, r := range rows {
		var values []string
		for _, field := range r.fields() {
			values = append(values, *field)
		}
		out.WriteString(strings.Join(values, "\t") + "\n")
	}
	if err := os.WriteFile(resultsFile, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	document, before, after := readTable(t)
	document = slices.Concat(document[:before], []byte(renderTable(rows)), document[after:])
	if err := os.WriteFile(tableFile, document, 0o600); err != nil {
		t.Fatal(err)
	}
}

// readTable reads the document, and where its table begins and ends.
func readTable(t *testing.T) (document []byte, begin, end int) {
	t.Helper()
	document, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	begin, end = bytes.Index(document, []byte(tableBegin)), bytes.Index(document, []byte(tableEnd))
	if begin < 0 || end < begin {
		t.Fatalf("%s lacks the lines\n%s%s", tableFile, tableBegin, tableEnd)
	}
	return document, begin + len(tableBegin), end
}

// sortRows sorts rows as the table has them.
func sortRows(rows []row) {
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(
			cmp.Compare(a.client, b.client), cmp.Compare(a.over, b.over), cmp.Compare(a.revision, b.revision),
			cmp.Compare(slices.Index(cases, a.name), slices.Index(cases, b.name)))
	})
}

// renderTable makes the Markdown of rows: a table and its notes.
func renderTable(rows []row) string {
	var out strings.Builder
	out.WriteString("\n| client | over | revision | " + strings.Join(cases, " | ") + " |\n|" + strings.Repeat("---|", 3+len(cases)) + "\n")
	words := map[string]string{works: "yes", fallback: "fallback", cannot: "no", fails: "fails"}
	var notes []string
	for begin := 0; begin < len(rows); {
		end := begin + 1
		for end < len(rows) && rows[end].route() == rows[begin].route() {
			end++
		}
		r := rows[begin]
		fmt.Fprintf(&out, "| %s %s | %s | %s |", r.client, r.version, r.over, r.revision)
		for _, name := range cases {
			cell := ""
			if i := slices.IndexFunc(rows[begin:end], func(r row) bool { return r.name == name }); i >= 0 {
				r := rows[begin+i]
				cell = words[r.outcome]
				if r.note != "" {
					if !slices.Contains(notes, r.note) {
						notes = append(notes, r.note)
					}
					cell += fmt.Sprintf(" (%d)", slices.Index(notes, r.note)+1)
				}
			}
			fmt.Fprintf(&out, " %s |", cell)
		}
		out.WriteString("\n")
		begin = end
	}
	out.WriteString("\n")
	for i, note := range notes {
		fmt.Fprintf(&out, "%d. %s\n", i+1, note)
	}
	out.WriteString("\n")
	return out.String()
}

// TestTable compares the table of the document with the rows.
func TestTable(t *testing.T) {
	rows := readResults(t)
	document, begin, end := readTable(t)
	if want := renderTable(rows); string(document[begin:end]) != want {
		t.Errorf("the table in %s is\n%s\nthe rows are\n%s\n%s", tableFile, document[begin:end], want, hint)
	}
}
