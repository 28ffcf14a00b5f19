package published

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/golden/providers"
)

// differences are the places in which the table of docs/reference/portability.md and the providers' rules differ, with the
// counts of tools by the table and by the rules, and why.
var differences = map[string]string{
	"everything output-dialect 1, 0":             "no provider gets the schemas of outputs: Claude Code refuses it",
	"filesystem output-dialect 14, 0":            "as for everything",
	"memory output-dialect 9, 0":                 "as for everything",
	"sequentialthinking output-dialect 1, 0":     "as for everything",
	"firecrawl description-length 7, 0":          "no provider has the limit: Claude Code cuts the description",
	"sequentialthinking description-length 1, 0": "as for firecrawl",
	"notion reference 6, 24":                     "all its tools have the same $defs, which 18 of them do not use: the page leaves these out, a provider may not",
	"notion type-list 3, 24":                     "in these $defs",
	"notion combination 0, 24":                   "oneOf in these $defs, which the form parameters lacks: the page has it at the root alone",
	"notion const 0, 24":                         "in these $defs: the page has it among the rows without a note",
	"notion no-type 2, 24":                       "in these $defs",
}

// row names the row of the page that is about a finding of the rules.
func row(finding string) string {
	_, what, _ := strings.Cut(finding, " ")
	for _, r := range []struct{ start, row string }{
		{"types ", "type-list"}, {"$ref", "reference"}, {"$defs", "reference"}, {"const", "const"}, {"oneOf", "combination"}, {"no type", "no-type"},
	} {
		if strings.HasPrefix(what, r.start) {
			return r.row
		}
	}
	return finding
}

// TestProviders compares what the providers' rules say of the lists with the table of the page.
func TestProviders(t *testing.T) {
	page := string(read(t, "../../docs/reference/portability.md"))
	found := map[string]string{}
	for _, s := range servers {
		counts := map[string]int{}
		var list struct{ Tools []providers.Tool }
		if err := json.Unmarshal(read(t, s.path()), &list); err != nil || len(list.Tools) == 0 {
			t.Fatalf("%d tools: %v", len(list.Tools), err)
		}
		for _, tool := range list.Tools {
			schema, err := providers.Decode(tool.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			rows := map[string]bool{}
			for _, provider := range providers.All() {
				if provider.Name == "OpenAI strict" {
					continue // in which no host sends them
				}
				for _, finding := range provider.Check(tool.Name, schema) {
					rows[row(finding)] = true
				}
			}
			for row := range rows {
				counts[row]++
			}
		}
		onPage := pageRows(t, page, s.name)
		for row := range onPage {
			counts[row] += 0
		}
		for row, count := range counts {
			if count != onPage[row] {
				difference := fmt.Sprintf("%s %s %d, %d", s.name, row, onPage[row], count)
				found[difference] = differences[difference]
			}
		}
	}
	if d := cmp.Diff(differences, found); d != "" {
		t.Errorf("the page and the rules differ otherwise (-explained +found):\n%s", d)
	}
}

// pageRows returns the rows that apply to a server by the page, with the count of its tools.
func pageRows(t *testing.T, page, server string) map[string]int {
	t.Helper()
	line := regexp.MustCompile(`(?m)^\| ` + server + ` \| \d+ \| (.*) \|$`).FindStringSubmatch(page)
	if line == nil {
		t.Fatalf("the page does not have %s", server)
	}
	rows := map[string]int{}
	for _, part := range regexp.MustCompile("`([a-z-]+)` ([0-9]+)").FindAllStringSubmatch(line[1], -1) {
		count, err := strconv.Atoi(part[2])
		if err != nil {
			t.Fatal(err)
		}
		rows[part[1]] = count
	}
	if len(rows) == 0 && !slices.Equal(line[1:], []string{"none"}) {
		t.Fatalf("the page says %q of %s", line[1], server)
	}
	return rows
}
