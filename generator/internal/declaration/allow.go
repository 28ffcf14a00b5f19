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
)

// allow is a //mcptask:allow directive.
type allow struct {
	pos    token.Pos
	rules  []string
	reason string
}

// readAllow reads a directive that allows what mcptaskgen breaking would report. There may be several above one
// declaration, each with its own reason.
func (r *reader) readAllow(node ast.Node, d directive.Directive) {
	s := settings{}
	r.mergeSettings(s, d)
	a := allow{pos: d.Pos, reason: s["reason"].text}
	for _, key := range []string{"breaking", "reason"} {
		if _, ok := s[key]; !ok {
			r.addProblem(d.Pos, "mcptask:allow has no "+key+"=", `write //mcptask:allow breaking=argument-required reason="why no caller minds"`)
		}
	}
	names := breaking.RuleNames()
	for rule := range strings.SplitSeq(s["breaking"].text, ",") {
		if rule != "" && !slices.Contains(names, rule) {
			r.problems.AddMisspelling(r.fset.Position(s["breaking"].valuePos), fmt.Sprintf("%q is not a rule of mcptaskgen breaking", rule), "", rule, names,
				"the rules are "+strings.Join(names, ", "))
			continue
		}
		a.rules = append(a.rules, rule)
	}
	r.allows[node] = append(r.allows[node], a)
}

// allowed returns what the directives above a type or method allow.
func (r *reader) allowed(node ast.Node) (list []model.Allow) {
	for _, a := range r.allows[node] {
		list = append(list, model.Allow{Pos: r.fset.Position(a.pos), Rules: a.rules, Reason: a.reason})
	}
	return list
}

// reportStrayAllows reports directives above types and methods that declare nothing.
func (r *reader) reportStrayAllows() {
	for node, list := range r.allows {
		if r.directives[node] == nil && !r.serviceMethods[node] {
			r.addProblem(list[0].pos, "mcptask:allow is above code that declares nothing", "put it directly above "+expectedPlaces["allow"])
		}
	}
}
