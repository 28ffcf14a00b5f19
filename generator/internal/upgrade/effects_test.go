package upgrade

import (
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// TestEffects checks that every effect matches a change between some two revisions, and that
// every move between two revisions has a report.
func TestEffects(t *testing.T) {
	seen := make([]bool, len(effects))
	for _, from := range schema.Revisions() {
		for _, to := range schema.Revisions() {
			if from == to {
				continue
			}
			m, err := newMove(from, to)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range effects {
				for _, c := range m.changes {
					seen[i] = seen[i] || e.matchesChange(c)
				}
			}
			pkg := everything()
			text, err := Report([]Package{{Model: pkg, Shown: "p", Serves: true, Before: []string{from}, After: []string{to}}}, nil, []string{to}, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"# Tasks of MCP " + to + " in p\n", "| `p` | " + from + " | " + to + " |", "**How tasks work**", "- [ ] Clients that speak only " + from} {
				if !strings.Contains(text, part) {
					t.Errorf("from %s to %s: the report does not say %q", from, to, part)
				}
			}
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "|") && strings.Count(line, "|") != 5 {
					t.Errorf("from %s to %s: not a line of a table of four columns: %s", from, to, line)
				}
			}
		}
	}
	for i, e := range effects {
		if !seen[i] {
			t.Errorf("no two revisions differ in %s %s", e.section, e.means)
		}
	}
}

// everything returns a package with a tool for each effect.
func everything() *model.Package {
	input := &model.Input{Name: "Approval"}
	return &model.Package{Name: "p", Inputs: []*model.Input{input}, Services: []*model.Service{
		{Name: "S", Tools: []*model.Tool{
			{Name: "required", Task: true, Policy: model.Policy{Task: model.Required, Immediate: "It runs."}},
			{Name: "optional", Task: true, Policy: model.Policy{Task: model.Optional}, Questions: []*model.Input{input}},
			{Name: "forbidden", Policy: model.Policy{Task: model.Forbidden}},
		}},
		{Name: "F", Fallback: true, Tools: []*model.Tool{{Name: "carried", Policy: model.Policy{Task: model.Required}}}},
	}}
}

// TestUnused checks that the report leaves out what the tools do not use.
func TestUnused(t *testing.T) {
	pkg := everything()
	pkg.Inputs = nil
	for _, s := range pkg.Services {
		for _, tool := range s.Tools {
			tool.Questions = nil
		}
	}
	write := func(pkg *model.Package) string {
		text, err := Report([]Package{{Model: pkg, Shown: "p", Serves: true, Before: []string{"2025-11-25"}, After: []string{"2026-07-28"}}}, nil, []string{"2026-07-28"}, true)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	text := write(pkg)
	for _, part := range []string{"ErrCannotAsk", "inputRequests", "its questions", "tasks/update is new"} {
		if strings.Contains(text, part) {
			t.Errorf("no tool asks, but the report says %q", part)
		}
	}
	pkg.Services = pkg.Services[:1]
	pkg.Services[0].Tools = pkg.Services[0].Tools[2:]
	if text := write(pkg); strings.Contains(text, "**Methods**") || strings.Contains(text, "Proxies") {
		t.Errorf("no tool is a task, but the report says\n%s", text)
	}
}
