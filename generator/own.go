package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/reference"
)

// Command says how a file is generated.
type Command struct {
	// Dir is the absolute directory that paths in the flags are relative to: that of the package, or
	// the working directory for a list of tools that was named there.
	Dir string
	commandline.Flags
	// Line is the position of the //go:generate line with these flags. It is the zero value if there
	// is none.
	Line token.Position

	at          token.Position    // of the line or of the header with the flags
	docs        *commandline.Line // a line that writes a reference; nil for a line that generates code
	mustDeclare bool              // go generate fails if the package declares nothing
}

// findCommands returns the commands for the files of a package: those of its //go:generate lines and
// those in the first lines of its generated files. If lines of the package say how it is generated,
// its files decide nothing. If there is neither a line nor a file, the package is generated without
// flags.
func (g *generation) findCommands(fset *token.FileSet, pkg *load.Package) []Command {
	if pkg.PkgPath == "command-line-arguments" { // files do not tell which package they are part of
		return []Command{{Dir: pkg.Dir}}
	}
	commands := g.findLines(fset, pkg)
	fromLines := slices.Clone(commands)
	generates := func(c Command) bool { return c.docs == nil && !c.ReadsTools() }
	byLine := slices.ContainsFunc(commands, generates)
	for _, f := range pkg.Generated {
		c := Command{Dir: pkg.Dir, Flags: f.Header.Flags, at: token.Position{Filename: f.Path, Line: 1, Column: 1}}
		switch {
		case !f.Header.Recorded || byLine && generates(c):
			continue
		case f.Header.Err != nil:
			g.fail(c, f.Header.Err)
			continue
		case c.ReadsTools():
			made := slices.ContainsFunc(fromLines, func(l Command) bool { return l.ReadsTools() && l.path() == f.Path })
			if _, err := os.Stat(filepath.Join(pkg.Dir, c.Tools)); made || c.path() != f.Path || errors.Is(err, fs.ErrNotExist) {
				continue // the list is not kept beside its client, which cannot be compared then
			}
		}
		commands = append(commands, c)
	}
	if !slices.ContainsFunc(commands, generates) {
		commands = append(commands, Command{Dir: pkg.Dir})
	}
	// If several commands write the same file, the last one wins.
	for i := len(commands) - 1; i >= 0; i-- {
		if slices.ContainsFunc(commands[i+1:], func(later Command) bool { return later.path() == commands[i].path() }) {
			commands = slices.Delete(commands, i, i+1)
		}
	}
	return commands
}

// path returns the absolute path of the file that the command writes.
func (c Command) path() string { return diag.Absolute(c.Dir, c.Output()) }

// findLines returns the commands of the //go:generate lines that write files of a package, in the order
// in which go generate runs them.
func (g *generation) findLines(fset *token.FileSet, pkg *load.Package) (commands []Command) {
	files := slices.Clone(pkg.Files)
	slices.SortFunc(files, func(a, b *ast.File) int {
		return strings.Compare(fset.Position(a.Package).Filename, fset.Position(b.Package).Filename)
	})
	for _, file := range files {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				pos := fset.Position(comment.Pos())
				if pos.Column != 1 {
					continue
				}
				line, err := commandline.ParseLine(comment.Text, pos.Filename, pkg.Name)
				switch {
				case err != nil:
					g.problems.Add(pos, "go generate fails here: "+err.Error(), "")
				case line == nil || !line.Docs && !line.ReadsTools() && !line.IsFor(pkg.Dir, pkg.PkgPath):
				default:
					c := Command{Dir: pkg.Dir, Flags: line.Flags, Line: pos, at: pos, mustDeclare: len(line.Packages) == 0}
					if line.Docs {
						c.docs = line
					}
					commands = append(commands, c)
				}
			}
		}
	}
	return commands
}

// dependsOn reports whether a build constraint has one of the tags.
func dependsOn(constraint, tags string) bool {
	words := strings.FieldsFunc(constraint, func(r rune) bool {
		return r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return slices.ContainsFunc(strings.Split(tags, ","), func(tag string) bool { return slices.Contains(words, strings.TrimSpace(tag)) })
}

// generateList generates the file of a list of tools.
func (g *generation) generateList(c Command) {
	flags := c.Relative(c.Dir, g.dir)
	out, err := GenerateTools(ToolsConfig{
		Dir: g.dir, File: flags.Tools, Out: flags.Out, Package: flags.Package, Service: flags.Service,
		ServerOnly: flags.ServerOnly, ClientOnly: flags.ClientOnly, Revisions: flags.Revisions,
	})
	if err != nil {
		g.fail(c, err)
		return
	}
	for name, content := range out.Files {
		path := out.absolutePath(name)
		g.files[path], g.commands[path] = content, c
	}
	g.notes = append(g.notes, out.Notes...)
}

// generateDocs writes the reference that a line with mcptaskgen docs names.
func (g *generation) generateDocs(ctx context.Context, fset *token.FileSet, pkg *load.Package, c Command) {
	path := c.path()
	text, err := "", checkReference(g.dir, path)
	switch {
	case err != nil:
	case c.mustDeclare:
		protocol, protocolErr := g.protocolFor(Command{Dir: g.dir})
		m := g.readDeclarations(fset, pkg, protocol)
		if m == nil {
			err = cmp.Or(protocolErr, newNothingError([]string{"./" + diag.Relative(g.dir, c.Dir)}, []*load.Package{pkg}))
			break
		}
		text, err = reference.Write([]*model.Package{m})
	default:
		text, err = Docs(ctx, Config{Dir: pkg.Dir, Patterns: c.docs.Packages, Flags: commandline.Flags{Tags: c.Tags}, Step: g.cfg.Step})
	}
	if err != nil {
		g.fail(c, err)
		return
	}
	g.files[path], g.commands[path] = []byte(text), c
}

// checkReference refuses to replace a file that mcptaskgen docs did not write.
func checkReference(dir, path string) error {
	old, err := output.Read(filepath.Dir(path), filepath.Base(path))
	if err == nil && old != nil && !strings.HasPrefix(string(old), reference.Header) {
		err = fmt.Errorf("%s was not written by mcptaskgen docs; remove it, or choose another --out", diag.Relative(dir, path))
	}
	return err
}
