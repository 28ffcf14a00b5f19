package upgrade

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

// placedLine is a line for go generate with its place.
type placedLine struct {
	*commandline.Line

	file   string // absolute
	number int    // from 1
}

// linesFor finds the lines for a package: in its own folder, and in those above it, up to that of the
// module.
func linesFor(dir, importPath string) (found []placedLine, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		names, err := filepath.Glob(filepath.Join(at, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			lines, err := linesIn(name)
			if err != nil {
				return nil, err
			}
			for _, line := range lines {
				if line.Covers(dir, importPath) {
					found = append(found, line)
				}
			}
		}
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil || filepath.Dir(at) == at {
			return found, nil
		}
	}
}

// linesIn finds the lines of a file. Those that are wrong make nothing, as go generate says.
func linesIn(name string) (found []placedLine, err error) {
	src, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(src), "//go:generate ") {
		return nil, err
	}
	pkg := ""
	if file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly); err == nil {
		pkg = file.Name.Name
	}
	number := 0
	for text := range strings.Lines(string(src)) {
		number++
		if line, err := commandline.ParseLine(strings.TrimRight(text, "\n"), name, pkg); err == nil && line != nil {
			found = append(found, placedLine{line, name, number})
		}
	}
	return found, nil
}

// word is one of a line, which Go's quotes may hold together.
var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s"]+`)

// nameRevisions returns the text of a line with other revisions behind its --revision, the first where
// there are several, which the others go with.
func nameRevisions(line string, revisions []string) string {
	const flag = "--revision"
	var out strings.Builder
	end, first := 0, true
	words := word.FindAllStringIndex(line, -1)
	for i := 0; i < len(words); i++ {
		from, to := words[i][0], words[i][1]
		text := unquoted(line[from:to])
		var value string
		switch {
		case text == flag && i+1 < len(words):
			i++
			value, to = flag+line[to:words[i][0]]+like(line[words[i][0]:words[i][1]], revisions), words[i][1]
		case strings.HasPrefix(text, flag+"="):
			value = flag + "=" + strings.Join(revisions, ",")
		default:
			continue
		}
		if first {
			out.WriteString(line[end:from] + value)
		} else {
			out.WriteString(strings.TrimRight(line[end:from], " \t"))
		}
		end, first = to, false
	}
	return out.String() + line[end:]
}

// like writes revisions with quotes where what they replace has them.
func like(old string, revisions []string) string {
	text := strings.Join(revisions, ",")
	if strings.HasPrefix(old, `"`) {
		return strconv.Quote(text)
	}
	return text
}

func unquoted(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// rewrite returns the text of a file with other revisions in the lines of those numbers.
func rewrite(src string, numbers []int, revisions []string) string {
	var out strings.Builder
	number := 0
	for text := range strings.Lines(src) {
		number++
		if slices.Contains(numbers, number) {
			text = nameRevisions(text, revisions)
		}
		out.WriteString(text)
	}
	return out.String()
}
