package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/breaking"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/contract"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
)

// BreakingConfig selects what [Output.Breaking] compares.
type BreakingConfig struct {
	// Against is the old state: git:REF for a commit, or the directory of another checkout of the module.
	Against string
	// Allow lists rules whose findings are allowed. A declaration can also allow a rule with //mcptask:allow.
	Allow []string
	// Models includes the changes that only models notice.
	Models bool
}

// Finding is a change of a declaration that breaks something.
type Finding struct {
	// Pos is the place of the declaration, or else of the file. Its path is relative to the working directory.
	Pos     token.Position
	Rule    string // such as argument-required
	Message string
	Hint    string
	Breaks  []string // of callers, stored tasks and models
	// Allowed is the reason of the directive that allows the finding, or "--allow". "" means that nothing allows it.
	Allowed string
}

// String returns the place, the rule, the message and what it breaks, or why it is allowed, as one line.
func (f Finding) String() string {
	if f.Allowed != "" {
		return fmt.Sprintf("%s: allowed: %s: %s (%s)", f.Pos, f.Rule, f.Message, f.Allowed)
	}
	return fmt.Sprintf("%s: %s: %s (breaks %s)", f.Pos, f.Rule, f.Message, strings.Join(f.Breaks, " and "))
}

// Breaking compares the generated files with those of another state and returns what breaks callers and stored tasks,
// sorted by place, with what is allowed. The notes name the //mcptask:allow directives that are not needed.
//
// Files of the other state count if they belong to the packages of the run, or to those that its patterns matched then.
// Breaking runs no code of either state. It reads git with the git command, without the network.
func (o Output) Breaking(ctx context.Context, cfg BreakingConfig) (findings []Finding, notes []string, err error) {
	rules := breaking.RuleNames()
	for _, name := range cfg.Allow {
		if !slices.Contains(rules, name) {
			return nil, nil, fmt.Errorf("--allow %s: there is no such rule; %s", name, cmp.Or(diag.DidYouMean(name, rules), "the rules are "+strings.Join(rules, ", ")))
		}
	}
	if o.run == nil {
		return nil, nil, nil // nothing was generated
	}
	defer o.run.startStep("against")()
	now, err := o.readContracts()
	if err != nil {
		return nil, nil, err
	}
	old, err := contract.ReadState(ctx, o.Dir, cfg.Against, o.run.covers)
	if errors.Is(err, contract.ErrNoFiles) && o.run.nothing != nil {
		return nil, nil, fmt.Errorf("there is nothing to compare in %s or now: %w", cfg.Against, o.run.nothing)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, pattern := range o.run.patterns() {
		dir := o.run.patternDir(strings.TrimSuffix(filepath.ToSlash(pattern), "/..."))
		wasThere := func(f *contract.File) bool { return strings.HasPrefix(f.Path, dir+"/") }
		if !o.run.cfg.ReadsTools() && o.run.isRemoved(pattern) && !slices.ContainsFunc(old.Files, wasThere) {
			return nil, nil, fmt.Errorf("%s has no declarations, neither in %s nor now; correct the pattern", pattern, cfg.Against)
		}
	}
	var list diag.List
	used := map[token.Position]bool{}
	for _, f := range breaking.Compare(old.Files, now, cfg.Models) {
		pos, allows := o.run.locate(f)
		pos.Filename = diag.Relative(o.Dir, filepath.FromSlash(pos.Filename))
		finding := Finding{Pos: pos, Rule: f.Rule.Name, Message: f.Message, Hint: f.Hint, Breaks: f.Breaks}
		if slices.Contains(cfg.Allow, f.Rule.Name) {
			finding.Allowed = "--allow"
		}
		for _, a := range allows {
			if slices.Contains(a.Rules, f.Rule.Name) {
				finding.Allowed, used[a.Pos] = a.Reason, true
			}
		}
		findings = append(findings, finding)
	}
	for _, m := range o.run.models {
		for _, a := range allowsOf(m) {
			// Without models, a directive about descriptions may still be needed.
			if !used[a.Pos] && (cfg.Models || !slices.Contains(a.Rules, "description")) {
				list.AddNote(a.Pos, "this mcptask:allow is not needed: there are no findings of "+strings.Join(a.Rules, " or ")+" here; remove it")
			}
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.Filename, b.Pos.Filename), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	// The halves of a package may be two files, which both have its questions.
	return slices.CompactFunc(findings, func(a, b Finding) bool { return a.String() == b.String() }), list.Notes(o.Dir), nil
}

// readContracts reads the files that the run has generated.
func (o Output) readContracts() ([]*contract.File, error) {
	var files []*contract.File
	for name, content := range o.Files {
		if path.Ext(name) != ".go" {
			continue // a reference
		}
		f, err := contract.Read(filepath.ToSlash(diag.Absolute(o.Dir, filepath.FromSlash(name))), content)
		if err == nil {
			err = f.AddList(func(name string) ([]byte, error) { return os.ReadFile(filepath.FromSlash(name)) })
		}
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *contract.File) int { return cmp.Compare(a.Path, b.Path) })
	return files, nil
}

// covers reports whether a generated file of another state belongs to the packages that the run reads, or would if they were
// there. Modules inside the module are left out.
func (g *generation) covers(modules []string, name string) bool {
	dir := path.Dir(name)
	local := filepath.FromSlash(name)
	if _, err := os.Stat(local); err == nil && g.files[local] == nil && !slices.Contains(g.stays, local) {
		return false // it is there, and not of this run: it needs other build tags
	}
	for f, c := range g.commands {
		if filepath.ToSlash(filepath.Dir(f)) == dir || filepath.ToSlash(c.Dir) == dir {
			return true
		}
	}
	if slices.ContainsFunc(g.stays, func(f string) bool { return filepath.ToSlash(filepath.Dir(f)) == dir }) {
		return true
	}
	for _, pattern := range g.patterns() {
		root, below := strings.CutSuffix(filepath.ToSlash(pattern), "/...")
		root = g.patternDir(root)
		rest, inside := strings.CutPrefix(dir+"/", strings.TrimSuffix(root, "/")+"/")
		switch {
		case root == "" || !inside || rest != "" && !below:
		case slices.ContainsFunc(strings.Split(rest, "/"), func(s string) bool {
			return s == "testdata" || s == "vendor" || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "_")
		}):
		case !crossesModule(modules, root, dir):
			return true
		}
	}
	return false
}

func (g *generation) patterns() []string {
	if len(g.cfg.Patterns) == 0 {
		return []string{"."}
	}
	return g.cfg.Patterns
}

// patternDir returns the slash-separated directory of a pattern without its "/...", or "" if it is unknown.
func (g *generation) patternDir(root string) string {
	if root == "." || root == ".." || strings.HasPrefix(root, "./") || strings.HasPrefix(root, "../") || filepath.IsAbs(root) {
		return filepath.ToSlash(diag.Absolute(g.dir, filepath.FromSlash(root)))
	}
	for _, m := range g.models {
		if rest, ok := strings.CutPrefix(m.Path+"/", root+"/"); ok {
			return strings.TrimSuffix(strings.TrimSuffix(filepath.ToSlash(m.Dir)+"/", "/"+rest), "/")
		}
	}
	return ""
}

// crossesModule reports whether a directory below root belongs to another module, in the old state or now.
func crossesModule(modules []string, root, dir string) bool {
	for ; dir != root && len(dir) > len(root); dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.FromSlash(dir + "/go.mod")); err == nil || slices.Contains(modules, dir) {
			return true
		}
	}
	return false
}

func allowsOf(m *model.Package) (list []model.Allow) {
	for _, s := range m.Services {
		list = append(list, s.Allows...)
		for _, t := range s.Tools {
			list = append(list, t.Allows...)
		}
	}
	for _, in := range m.Inputs {
		list = append(list, in.Allows...)
	}
	for _, e := range m.Errors {
		list = append(list, e.Allows...)
	}
	return list
}

// locate returns the place of a finding, and the directives that may allow it.
func (g *generation) locate(f breaking.Finding) (pos token.Position, allows []model.Allow) {
	if f.File == nil {
		return token.Position{Filename: f.Old}, nil
	}
	pos = token.Position{Filename: f.File.Path, Line: 1, Column: 1}
	if f.Tool != nil && f.Tool.Pos.IsValid() {
		pos = f.Tool.Pos
	}
	i := slices.IndexFunc(g.models, func(m *model.Package) bool { return filepath.ToSlash(m.Dir) == path.Dir(f.File.Path) })
	if i < 0 || f.File.List != "" {
		return pos, nil
	}
	m := g.models[i]
	move := func(to token.Position, t types.Type) {
		pos = to
		if field := m.Position(findField(t, f.Property, 0)); field.IsValid() && (output.IsWithin(g.dir, field.Filename) || output.IsWithin(m.Dir, field.Filename)) {
			pos = field
		}
	}
	named := func(s *model.Service) bool { return f.Service != nil && s.Name == f.Service.Name }
	isGone := f.Input == nil && f.Error == nil && !slices.ContainsFunc(m.Services, named)
	switch {
	case !isGone:
	case len(m.Services) == 0:
		allows = allowsOf(m) // any declaration of the package may allow it
	default: // any service of the package may allow it
		pos = m.Services[0].Pos
		for _, s := range m.Services {
			allows = append(allows, s.Allows...)
		}
	}
	for _, s := range m.Services {
		if !named(s) {
			continue
		}
		pos, allows = s.Pos, append(allows, s.Allows...)
		for _, t := range s.Tools {
			if f.Tool != nil && t.Name == f.Tool.Name {
				of := t.In
				if f.Result {
					of = t.Out
				}
				move(t.Pos, of)
				allows = append(allows, t.Allows...)
			}
		}
	}
	for _, in := range m.Inputs {
		if f.Input != nil && in.Name == f.Input.Name {
			move(in.Pos, in.Type)
			allows = append(allows, in.Allows...)
		}
	}
	for _, e := range m.Errors {
		if f.Error != nil && e.Code == f.Error.Code {
			move(e.Pos, e.Type)
			allows = append(allows, e.Allows...)
		}
	}
	return pos, allows
}

// findField returns the place of the field that a path of properties leads to, or no place.
func findField(t types.Type, path []string, level int) token.Pos {
	if t == nil || len(path) == 0 || level > 50 {
		return token.NoPos
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return findField(u.Elem(), path, level+1)
	case *types.Slice:
		return findField(u.Elem(), path[1:], level+1)
	case *types.Array:
		return findField(u.Elem(), path[1:], level+1)
	case *types.Map:
		return findField(u.Elem(), path[1:], level+1)
	case *types.Struct:
		for i := range u.NumFields() {
			field := u.Field(i)
			name, _, _ := strings.Cut(reflect.StructTag(u.Tag(i)).Get("json"), ",")
			if name == "" && field.Embedded() {
				if pos := findField(field.Type(), path, level+1); pos.IsValid() {
					return pos
				}
			}
			if cmp.Or(name, field.Name()) == path[0] {
				if pos := findField(field.Type(), path[1:], level+1); pos.IsValid() {
					return pos
				}
				return field.Pos()
			}
		}
	}
	return token.NoPos
}
