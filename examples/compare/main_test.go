package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCompare measures everything for a moment, and writes the tables into a copy of the page. It checks that each
// target has the figures that it should have, but not their values.
func TestCompare(t *testing.T) {
	s := settings{rounds: 1, while: 10 * time.Millisecond, tasks: 20}
	m, err := compare(t.Context(), t.Output(), s)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(m.columns, onPostgres) && os.Getenv("MCPTASK_REQUIRE") == "all" {
		t.Error("PostgreSQL is not installed")
	}
	if len(m.rows) != 7 {
		t.Errorf("the rows are %q", m.rows)
	}
	for _, column := range m.columns {
		for _, row := range m.rows {
			key := [2]string{row, column}
			want, onDatabase := 1, 0
			if column == onMCPGo && !strings.HasSuffix(row, "2025-11-25") {
				want = 0
			}
			if (column == onSQLite || column == onPostgres) && (strings.HasPrefix(row, "life") || row == "stored report") {
				onDatabase = 1
			}
			if len(m.toEcho[key]) != want || len(m.toDriver[key]) != onDatabase {
				t.Errorf("%s, %s: %v to the echo, %v to the driver", row, column, m.toEcho[key], m.toDriver[key])
			}
		}
	}
	data, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(page, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first\n", m.format(s)} { // the second replaces the first
		if err := writePage(page, text); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(data), beginMark)
	_, after, _ := strings.Cut(string(data), endMark)
	if string(written) != before+beginMark+"\n"+m.format(s)+"\n"+endMark+after {
		t.Errorf("the page is now\n%s", written)
	}
}
