package generator

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// UpgradeConfig selects the packages and the revisions.
type UpgradeConfig struct {
	Dir      string   // the working directory; empty means the process's own
	Patterns []string // packages in the syntax of go list; empty means the package in Dir
	Tags     string   // build tags, comma-separated
	// Revisions are the revisions to generate for. At least one is required.
	Revisions []string
}

// PlanUpgrade generates packages for other revisions of the protocol, with the flags of their lines for go generate or
// of the first lines of their generated files. The output has the generated files, and the source files whose lines
// change. Its notes list the changes that are left to do by hand. PlanUpgrade writes nothing.
//
// Flags that name revisions, or schema files of revisions, name the new ones afterwards, in the line
// too. Flags that name none stay unchanged and still mean all released revisions. Errors are those of
// [Generate].
func PlanUpgrade(ctx context.Context, cfg UpgradeConfig) (Output, error) {
	if len(cfg.Revisions) == 0 {
		return Output{}, fmt.Errorf("name the revision to upgrade to with --revision; known revisions are %s", strings.Join(schema.Revisions(), ", "))
	}
	wanted, err := findRevisions(cfg.Revisions)
	if err != nil {
		return Output{}, err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return Output{}, err
	}
	u := upgrader{wanted: wanted, dir: dir, lines: map[token.Position]string{}, lineless: map[string]bool{}}
	g, out, err := generate(ctx, Config{
		Dir: dir, Patterns: cfg.Patterns, Flags: commandline.Flags{Tags: cfg.Tags}, Own: true,
		revise: u.revise,
	})
	if err != nil {
		return Output{}, err
	}
	if len(g.models) == 0 {
		return Output{}, errors.New("no //mcptask:service in the packages; there is nothing to upgrade")
	}
	maps.DeleteFunc(out.Files, func(name string, _ []byte) bool {
		return out.Commands[name].docs != nil || out.Commands[name].ReadsTools()
	})
	out.LeftOver, out.Notes = nil, append(u.notes, u.noteLineless()...)
	return out, u.rewriteLines(out)
}

// upgrader collects the changes of an upgrade.
type upgrader struct {
	wanted   []string
	dir      string
	lines    map[token.Position]string // the modules of the //go:generate lines that name revisions
	lineless map[string]bool           // directories of packages whose files name revisions, and no line of their own does
	notes    []string
}

// revise returns the flags with the wanted revisions, and adds notes on the changes that people must make to keep them.
func (u *upgrader) revise(c Command) commandline.Flags {
	flags, wanted := c.Flags, strings.Join(u.wanted, ",")
	place := fmt.Sprintf("%s:%d: note: ", diag.Relative(u.dir, c.at.Filename), c.at.Line)
	namesNone := len(flags.Revisions) == 0 && len(flags.Schemas) == 0
	isReleased := func(revision string) bool { return slices.Contains(schema.ReleasedRevisions(), revision) }
	switch {
	case namesNone && !slices.ContainsFunc(u.wanted, func(revision string) bool { return !isReleased(revision) }):
		return flags
	case !c.Line.IsValid():
		u.lineless[c.Dir] = true
	case namesNone:
		u.notes = append(u.notes, fmt.Sprintf("%sadd --revision %s: the line names no revision, so it means only the released ones", place, wanted))
	default:
		u.lines[c.Line] = c.module
	}
	for _, file := range c.Schemas {
		u.notes = append(u.notes, fmt.Sprintf("%s--revision %s takes the place of --schema %s", place, wanted, file))
	}
	flags.Schemas, flags.Revisions = nil, u.wanted
	return flags
}

// noteLineless notes the packages that no line generates, neither their own nor one of a package above.
func (u *upgrader) noteLineless() (notes []string) {
	for _, dir := range slices.Sorted(maps.Keys(u.lineless)) {
		generates := func(line token.Position) bool {
			rel, err := filepath.Rel(filepath.Dir(line.Filename), dir)
			return err == nil && filepath.IsLocal(rel)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(u.lines)), generates) {
			notes = append(notes, fmt.Sprintf("%s: note: no //go:generate line was found: pass --revision %s when you run mcptaskgen here", diag.Relative(u.dir, dir), strings.Join(u.wanted, ",")))
		}
	}
	return notes
}

// rewriteLines adds the files with go:generate lines that name revisions to the output.
func (u *upgrader) rewriteLines(out Output) error {
	for at, module := range u.lines {
		name := diag.Relative(u.dir, at.Filename)
		src := out.Files[name] // another of its lines was rewritten
		if src == nil {
			var err error
			if src, err = os.ReadFile(at.Filename); err != nil {
				return err
			}
		}
		lines := slices.Collect(strings.Lines(string(src)))
		line := lines[at.Line-1]
		revised := nameRevisions(line, u.wanted)
		if !u.isRevised(line, revised) {
			return fmt.Errorf("%s:%d: the flag --revision or --schema is within quotes; write --revision %s here by hand", name, at.Line, strings.Join(u.wanted, ","))
		}
		lines[at.Line-1] = revised
		out.Files[name], out.stay[name] = []byte(strings.Join(lines, "")), bound{module, token.Position{}}
	}
	return nil
}

// isRevised reports whether a line names the wanted revisions and is otherwise as it was.
func (u *upgrader) isRevised(line, revised string) bool {
	was, unread := commandline.ParseLine(strings.TrimSpace(line), "", "")
	is, err := commandline.ParseLine(strings.TrimSpace(revised), "", "")
	if unread != nil || err != nil || was == nil || is == nil {
		return false
	}
	was.Revisions, was.Schemas = u.wanted, nil
	return reflect.DeepEqual(was, is)
}

// revisionFlag matches a flag that names revisions, with the space before it.
var revisionFlag = regexp.MustCompile(`(\s--)(?:revision|schema)(=|\s+)("(?:[^"\\]|\\.)*"|\S+)`)

// nameRevisions returns a line with other revisions after --revision. They take the place of the first
// --revision or --schema. All others of these flags are removed.
func nameRevisions(line string, revisions []string) string {
	first := true
	return revisionFlag.ReplaceAllStringFunc(line, func(flag string) string {
		if !first {
			return ""
		}
		first = false
		parts, value := revisionFlag.FindStringSubmatch(flag), strings.Join(revisions, ",")
		if strings.HasPrefix(parts[3], `"`) {
			value = strconv.Quote(value)
		}
		return parts[1] + "revision" + parts[2] + value
	})
}
