package declaration

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/breaking"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/portable"
)

// allow is a //mcptask:allow directive. It has rules or rows.
type allow struct {
	pos    token.Pos
	rules  []string        // of mcptaskgen breaking
	rows   []string        // of the table of portability
	needed map[string]bool // the rows that allow something
	reason string
}

// readAllow reads a directive that allows what mcptaskgen breaking would report, or what hosts and providers refuse. There
// may be several above one declaration, each with its own reason.
func (r *reader) readAllow(node ast.Node, d directive.Directive) {
	s := settings{}
	r.mergeSettings(s, d)
	a := &allow{pos: d.Pos, reason: s["reason"].text, needed: map[string]bool{}}
	const example = `write //mcptask:allow breaking=argument-required reason="why no caller minds", or portable=reference and why it does no harm`
	breaks, isBreaking := s["breaking"]
	refused, isPortable := s["portable"]
	switch _, ok := s["reason"]; {
	case isBreaking && isPortable:
		r.addProblem(refused.pos, "mcptask:allow has both breaking= and portable=", "write two directives, each with its reason")
	case !isBreaking && !isPortable:
		r.addProblem(d.Pos, "mcptask:allow has neither breaking= nor portable=", example)
	case !ok:
		r.addProblem(d.Pos, "mcptask:allow has no reason=", example)
	}
	a.rules = r.readNames(breaks, breaking.RuleNames(), "%q is not a rule of mcptaskgen breaking", "the rules are ")
	a.rows = r.readNames(refused, portable.RowNames(), "%q is not a row of what --portable refuses", "the rows are ")
	r.allows[node] = append(r.allows[node], a)
}

// readNames returns the names in a setting that are known, and reports the others.
func (r *reader) readNames(s setting, known []string, unknown, hint string) (names []string) {
	for name := range strings.SplitSeq(s.text, ",") {
		switch {
		case slices.Contains(known, name):
			names = append(names, name)
		case name != "":
			r.problems.AddMisspelling(r.fset.Position(s.valuePos), fmt.Sprintf(unknown, name), "", name, known, hint+strings.Join(known, ", "))
		}
	}
	return names
}

// allowed returns what the directives above a type or method allow to break.
func (r *reader) allowed(node ast.Node) (list []model.Allow) {
	for _, a := range r.allows[node] {
		if len(a.rules) > 0 {
			list = append(list, model.Allow{Pos: r.fset.Position(a.pos), Rules: a.rules, Reason: a.reason})
		}
	}
	return list
}

// allowsRow reports whether a directive above one of the nodes allows a row of the table of portability.
func (r *reader) allowsRow(row *portable.Row, nodes ...ast.Node) bool {
	allows := false
	for _, node := range nodes {
		for _, a := range r.allows[node] {
			if slices.Contains(a.rows, row.Name) {
				allows, a.needed[row.Name] = true, true
			}
		}
	}
	return allows
}

// noteNeedlessAllows notes the rows that are allowed where nothing has them.
func (r *reader) noteNeedlessAllows() {
	for _, list := range r.allows {
		for _, a := range list {
			for _, row := range a.rows {
				if !a.needed[row] {
					r.addNote(a.pos, "this mcptask:allow is not needed: nothing here is refused as "+row+"; remove it")
				}
			}
		}
	}
}

// reportStrayAllows reports directives above types and methods that declare nothing.
func (r *reader) reportStrayAllows() {
	for node, list := range r.allows {
		if r.directives[node] == nil && !r.serviceMethods[node] {
			r.addProblem(list[0].pos, "mcptask:allow is above code that declares nothing", "put it directly above "+expectedPlaces["allow"])
		}
	}
}
