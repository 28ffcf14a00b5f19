// Package upgrade reports what a move of packages to other revisions of the protocol means for their
// tools, and rewrites their go:generate lines.
package upgrade

import (
	"bytes"
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
	"github.com/mcptaskgen/mcptaskgen/schema"
	"github.com/mcptaskgen/mcptaskgen/templates"
)

// Package is a package that moves to other revisions.
type Package struct {
	Model         *model.Package
	Shown         string   // its directory, as shown in messages
	Before, After []string // the revisions it was and will be generated for, oldest first
	Serves        bool     // a generated file has a server of tasks
	Notes         []string // manual steps that it needs
	// Gone holds the exported names that its generated file no longer has, with the positions at
	// which the package uses them.
	Gone map[string][]token.Position
}

// File is a file that the upgrade changes.
type File struct {
	Shown          string
	Added, Removed int // lines
}

// CompareFile counts the lines that change in a file.
func CompareFile(shown string, before, after []byte) File {
	file := File{Shown: shown}
	_, hunks, _ := bytes.Cut(diff.Diff("old", before, "new", after), []byte("\n@@"))
	for line := range bytes.Lines(hunks) {
		switch line[0] {
		case '+':
			file.Added++
		case '-':
			file.Removed++
		}
	}
	return file
}

// page is the data of the template.
type page struct {
	Title    string
	Check    bool
	Packages []row
	Tools    []tool
	Todo     []string
	Moves    []revisionNews
	Files    []File
}

type row struct{ Name, Before, After, Note string }

type tool struct{ Name, Package, Task, Changes string }

// revisionNews lists the changes from one revision to another.
type revisionNews struct {
	From, To string
	Sections []section
}

type section struct {
	Title   string
	Changes []string
}

// Report says in Markdown what changes for the packages and what to do. wanted are the
// requested revisions. check means that nothing was written.
func Report(packages []Package, files []File, wanted []string, check bool) (string, error) {
	p := page{Check: check, Files: files}
	var names []string
	var todo []string
	more := func(text string) {
		if text != "" && !slices.Contains(todo, text) {
			todo = append(todo, text)
		}
	}
	var all []*move
	for _, pkg := range packages {
		names = append(names, pkg.Model.Name)
		moves, err := pkg.findMoves(&all)
		if err != nil {
			return "", err
		}
		p.Packages = append(p.Packages, row{"`" + pkg.Shown + "`", joinOrNone(pkg.Before), joinOrNone(pkg.After), pkg.describeState()})
		pkg.listGoneNames(more)
		for _, note := range pkg.Notes {
			more(note)
		}
		for _, m := range moves {
			m.addPackage(pkg.Model)
		}
		for _, service := range pkg.Model.Services {
			for _, t := range service.Tools {
				s := subject{pkg.Model, service, t}
				p.Tools = append(p.Tools, tool{"`" + t.Name + "`", "`" + pkg.Shown + "`", string(t.Policy.Task), s.describeChanges(moves, more)})
			}
		}
		pkg.listRevisionChanges(more)
	}
	for _, m := range all {
		if n := m.collectNews(); len(n.Sections) > 0 {
			p.Moves = append(p.Moves, n)
		}
	}
	slices.Sort(names)
	p.Title = "Tasks of MCP " + words.Join(wanted)
	if len(names) > 0 {
		p.Title += " in " + words.Join(slices.Compact(names))
	}
	p.Todo = todo
	text, err := templates.Render("upgrade.md.tmpl", p)
	return strings.TrimSpace(text) + "\n", err
}

// findMoves pairs each new revision with the newest older one that the package had. It takes the moves
// from all, and adds those that are new there.
func (p Package) findMoves(all *[]*move) (moves []*move, err error) {
	known := schema.Revisions()
	for _, is := range p.After {
		if slices.Contains(p.Before, is) || len(p.Before) == 0 {
			continue
		}
		was := p.Before[0]
		for _, revision := range p.Before {
			if slices.Index(known, revision) < slices.Index(known, is) {
				was = revision
			}
		}
		i := slices.IndexFunc(*all, func(m *move) bool { return m.from.Revision == was && m.to.Revision == is })
		if i < 0 {
			m, err := newMove(was, is)
			if err != nil {
				return nil, err
			}
			i = len(*all)
			*all = append(*all, m)
		}
		moves = append(moves, (*all)[i])
	}
	return moves, nil
}

func (p Package) describeState() string {
	switch {
	case slices.Equal(p.Before, p.After):
		return "as before"
	case len(p.Before) == 0:
		return "was not generated"
	}
	return ""
}

// listGoneNames adds steps for names that are gone.
func (p Package) listGoneNames(more func(string)) {
	for _, name := range slices.Sorted(maps.Keys(p.Gone)) {
		text := fmt.Sprintf("`%s` is gone from `%s`", name, p.Shown)
		if at := p.Gone[name]; len(at) > 0 {
			var places []string
			for _, pos := range at {
				places = append(places, "`"+pos.String()+"`")
			}
			more(text + "; the package uses it at " + words.Join(places) + " and does not compile until you replace it.")
			continue
		}
		more(text + "; code that uses it does not compile until you replace it.")
	}
}

// listRevisionChanges adds what operators of servers must know about new and removed revisions.
func (p Package) listRevisionChanges(more func(string)) {
	if !p.Serves {
		return
	}
	gone := slices.DeleteFunc(slices.Clone(p.Before), func(was string) bool { return slices.Contains(p.After, was) })
	if len(gone) > 0 {
		more(fmt.Sprintf("Clients that speak only %s no longer get tasks from the servers of `%s`. If you still have such clients, keep their revision: `--revision %s`. Otherwise remove it from `mcptask.Options.Revisions`, or `NewServer` returns an error.",
			strings.Join(gone, " or "), p.Shown, strings.Join(commandline.SortRevisions(append(gone, p.After...)), ",")))
	}
	released := schema.ReleasedRevisions()
	if !slices.Equal(p.After, released) && !slices.Equal(p.Before, p.After) {
		var quoted []string
		for _, revision := range p.After {
			quoted = append(quoted, fmt.Sprintf("%q", revision))
		}
		text := fmt.Sprintf("Servers of `%s` speak %s with `mcptask.Options{Revisions: []string{%s}}`.", p.Shown, words.Join(p.After), strings.Join(quoted, ", "))
		if slices.ContainsFunc(p.After, func(revision string) bool { return !slices.Contains(released, revision) }) {
			text += " A revision that is not released is off without this option."
		}
		more(text)
	}
}

// addPackage notes which features the tools of a package use.
func (m *move) addPackage(pkg *model.Package) {
	for _, service := range pkg.Services {
		for _, t := range service.Tools {
			s := subject{pkg, service, t}
			m.tasks, m.asks = m.tasks || s.isTask(), m.asks || s.mayAsk()
		}
	}
}

// titles are the sections that users notice, with their titles in the report.
var titles = []struct {
	section schema.Section
	title   string
}{
	{schema.Aspects, "How tasks work"}, {schema.States, "States"}, {schema.Methods, "Methods"}, {schema.Notifications, "Notifications"},
	{schema.Fields, "Fields"}, {schema.MetaKeys, "Keys of _meta"}, {schema.Capabilities, "Capabilities"}, {schema.Errors, "Errors"},
	{schema.Headers, "HTTP headers"},
}

// ofQuestions are the canonical names of changes that only affect programs that ask or answer
// questions.
var ofQuestions = []string{"answer", "answers", "ask", "before", "input", "questions"}

// collectNews returns the changes that affect the used features.
func (m *move) collectNews() revisionNews {
	n := revisionNews{From: m.from.Revision, To: m.to.Revision}
	for _, title := range titles {
		s := section{Title: title.title}
		for _, c := range m.changes {
			asks := slices.Contains(ofQuestions, c.Means) && !(c.Section == schema.Aspects && c.Means == "answer")
			if c.Section == title.section && (m.asks || !asks) && (m.tasks || asks) {
				s.Changes = append(s.Changes, c.Text)
			}
		}
		if len(s.Changes) > 0 {
			n.Sections = append(n.Sections, s)
		}
	}
	return n
}

func joinOrNone(revisions []string) string { return cmp.Or(strings.Join(revisions, ", "), "none") }
