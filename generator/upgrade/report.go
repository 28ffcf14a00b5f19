package upgrade

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/schema"
	"github.com/mcptaskgen/mcptaskgen/templates"
)

// movedPackage is a package that is moved to other revisions.
type movedPackage struct {
	model         *model.Package
	shown         string   // its folder, as messages have it
	before, after []string // the revisions that it was and is generated for, the oldest first
	notes         []string // what could not be done for it
	// gone are exported names that its generated file no longer has, with where the package uses them.
	gone map[string][]token.Position
}

// changedFile is a file that the upgrade changes.
type changedFile struct {
	Shown          string
	Added, Removed int // lines
}

// page is what the template needs.
type page struct {
	Title    string
	Check    bool
	Packages []row
	Tools    []tool
	Todo     []string
	Moves    []news
	Files    []changedFile
}

type row struct{ Name, Before, After, Note string }

type tool struct{ Name, Package, Task, Changes string }

// news are what a revision changes against another.
type news struct {
	From, To string
	Sections []section
}

type section struct {
	Title   string
	Changes []string
}

// report writes what changes for the packages and what is to be done, as Markdown. wanted are the
// revisions asked for; check says that nothing was written.
func report(packages []movedPackage, files []changedFile, wanted []string, check bool) (string, error) {
	p := page{Check: check, Files: files}
	var names []string
	var todo []string
	more := func(text string) {
		if text != "" && !slices.Contains(todo, text) {
			todo = append(todo, text)
		}
	}
	usage := map[string]*uses{} // by the move's names
	var order []move
	for _, pkg := range packages {
		names = append(names, pkg.model.Name)
		moves, err := pkg.moves()
		if err != nil {
			return "", err
		}
		p.Packages = append(p.Packages, row{"`" + pkg.shown + "`", list(pkg.before), list(pkg.after), pkg.remark()})
		pkg.names(more)
		for _, note := range pkg.notes {
			more(note)
		}
		for _, m := range moves {
			key := m.from.Revision + " " + m.to.Revision
			if usage[key] == nil {
				usage[key] = &uses{}
				order = append(order, m)
			}
			usage[key].add(pkg.model)
		}
		for _, service := range pkg.model.Services {
			for _, t := range service.Tools {
				s := subject{pkg.model, service, t}
				p.Tools = append(p.Tools, tool{"`" + t.Name + "`", "`" + pkg.shown + "`", string(t.Policy.Task), s.changes(moves, more)})
			}
		}
		pkg.revisions(more)
	}
	for _, m := range order {
		if n := read(m, *usage[m.from.Revision+" "+m.to.Revision]); len(n.Sections) > 0 {
			p.Moves = append(p.Moves, n)
		}
	}
	slices.Sort(names)
	p.Title = fmt.Sprintf("Tasks of MCP %s in %s", join(wanted), join(slices.Compact(names)))
	p.Todo = todo
	text, err := templates.Render("upgrade.md.tmpl", p)
	return strings.TrimSpace(text) + "\n", err
}

// moves pairs each revision that comes with the one before it that was there.
func (p movedPackage) moves() (moves []move, err error) {
	known := schema.Revisions()
	for _, is := range p.after {
		if slices.Contains(p.before, is) || len(p.before) == 0 {
			continue
		}
		was := p.before[0]
		for _, revision := range p.before {
			if slices.Index(known, revision) < slices.Index(known, is) {
				was = revision
			}
		}
		m, err := newMove(was, is)
		if err != nil {
			return nil, err
		}
		moves = append(moves, m)
	}
	return moves, nil
}

func (p movedPackage) remark() string {
	switch {
	case slices.Equal(p.before, p.after):
		return "as before"
	case len(p.before) == 0:
		return "was not generated"
	}
	return ""
}

// names says what to do about names that are gone.
func (p movedPackage) names(more func(string)) {
	var gone []string
	for name := range p.gone {
		gone = append(gone, name)
	}
	slices.Sort(gone)
	for _, name := range gone {
		text := fmt.Sprintf("`%s` is gone from `%s`", name, p.shown)
		if at := p.gone[name]; len(at) > 0 {
			var places []string
			for _, pos := range at {
				places = append(places, "`"+pos.String()+"`")
			}
			more(text + "; the package uses it at " + join(places) + ", and does not compile until it is replaced.")
			continue
		}
		more(text + "; code of yours that names it does not compile until it is replaced.")
	}
}

// revisions says what servers have to know of the revisions that come and go.
func (p movedPackage) revisions(more func(string)) {
	if len(p.model.Services) == 0 {
		return
	}
	for _, was := range p.before {
		if !slices.Contains(p.after, was) {
			more(fmt.Sprintf("Clients that speak only %s get no tasks any more from the servers of `%s`. Where there still are some, name it too: `--revision %s`. Else take it out of `mcptask.Options.Revisions` where it stands there: `NewServer` refuses it.",
				was, p.shown, strings.Join(sorted(append([]string{was}, p.after...)), ",")))
		}
	}
	released := schema.ReleasedRevisions()
	if !slices.Equal(p.after, released) && !slices.Equal(p.before, p.after) {
		var quoted []string
		for _, revision := range p.after {
			quoted = append(quoted, fmt.Sprintf("%q", revision))
		}
		text := fmt.Sprintf("Servers of `%s` speak %s with `mcptask.Options{Revisions: []string{%s}}`.", p.shown, join(p.after), strings.Join(quoted, ", "))
		if slices.ContainsFunc(p.after, func(revision string) bool { return !slices.Contains(released, revision) }) {
			text += " What is not a released revision is off without it."
		}
		more(text)
	}
}

// uses are what packages have that revisions differ in.
type uses struct{ tasks, asks bool }

func (u *uses) add(pkg *model.Package) {
	for _, service := range pkg.Services {
		for _, t := range service.Tools {
			u.tasks = u.tasks || t.Policy.Task != model.Forbidden
			u.asks = u.asks || subject{pkg, service, t}.asks()
		}
	}
}

// titles are the sections that users notice, with what a report calls them.
var titles = []struct {
	section schema.Section
	title   string
}{
	{schema.Aspects, "How tasks work"}, {schema.States, "States"}, {schema.Methods, "Methods"}, {schema.Notifications, "Notifications"},
	{schema.Fields, "Fields"}, {schema.MetaKeys, "Keys of _meta"}, {schema.Capabilities, "Capabilities"}, {schema.Errors, "Errors"},
	{schema.Headers, "HTTP headers"},
}

// ofQuestions are the canonical names of what only those notice who ask or answer questions.
var ofQuestions = []string{"answer", "answers", "ask", "before", "input", "questions"}

// read gathers the changes of a move that matter to those who use it so.
func read(m move, u uses) news {
	n := news{From: m.from.Revision, To: m.to.Revision}
	for _, title := range titles {
		s := section{Title: title.title}
		for _, c := range m.changes {
			asks := slices.Contains(ofQuestions, c.Means) && !(c.Section == schema.Aspects && c.Means == "answer")
			if c.Section == title.section && (u.asks || !asks) && (u.tasks || asks) {
				s.Changes = append(s.Changes, c.Text)
			}
		}
		if len(s.Changes) > 0 {
			n.Sections = append(n.Sections, s)
		}
	}
	return n
}

// sorted puts revisions in their order, the oldest first.
func sorted(revisions []string) []string {
	return slices.DeleteFunc(schema.Revisions(), func(revision string) bool { return !slices.Contains(revisions, revision) })
}

func list(revisions []string) string { return cmp.Or(strings.Join(revisions, ", "), "none") }

// join lists things in a sentence.
func join(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
