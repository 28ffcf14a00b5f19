package commandline

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// Line is a //go:generate line that runs mcptaskgen. It is not safe for concurrent use.
type Line struct {
	Flags

	Packages []string // the patterns; empty means the directory of the line
	File     string   // the file that contains the line
	Number   int      // the line number in the file; 0 if only a comment was parsed
}

// ignoredFlags are the command's flags that do not change what is generated.
var ignoredFlags = []string{"check", "diff", "prune", "verbose", "version"}

// ParseLine reads the text of a comment in a Go file. It needs the path of the file and the name of
// its package. It returns nil if the comment is not a //go:generate line that runs mcptaskgen,
// directly or by go tool or go run, to generate code. The error reports invalid arguments.
func ParseLine(comment, file, pkg string) (*Line, error) {
	args, ok := parseArguments(comment, file, pkg)
	if !ok {
		return nil, nil
	}
	line := &Line{File: file}
	set := pflag.NewFlagSet("mcptaskgen", pflag.ContinueOnError)
	set.Usage = func() {}
	line.Add(set)
	for _, name := range ignoredFlags {
		set.Bool(name, false, "")
	}
	switch err := set.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return nil, nil
	case err != nil:
		return nil, err
	}
	line.Config.Dir = filepath.Dir(file)
	line.Packages = set.Args()
	return line, nil
}

// subcommand matches a first argument that selects another command, such as docs.
var subcommand = regexp.MustCompile(`^[a-z]+$`)

// parseArguments returns the arguments that a line passes to mcptaskgen.
func parseArguments(comment, file, pkg string) ([]string, bool) {
	text, ok := strings.CutPrefix(comment, "//go:generate")
	if !ok || strings.TrimLeft(text, " \t") == text || !strings.Contains(text, "mcptaskgen") {
		return nil, false
	}
	words := splitWords(strings.TrimRight(text, "\r"))
	for i, word := range words {
		words[i] = os.Expand(word, func(name string) string {
			switch name {
			case "GOFILE":
				return filepath.Base(file)
			case "GOPACKAGE":
				return pkg
			case "DOLLAR":
				return "$"
			}
			return os.Getenv(name)
		})
	}
	for i, word := range words {
		program, _, _ := strings.Cut(word, "@")
		program = strings.TrimSuffix(strings.ReplaceAll(program, `\`, "/"), ".exe")
		if path.Base(program) != "mcptaskgen" {
			continue
		}
		byGo := i >= 2 && words[0] == "go" && (words[1] == "tool" || words[1] == "run")
		args := words[i+1:]
		return args, (i == 0 || byGo) && (len(args) == 0 || !subcommand.MatchString(args[0]))
	}
	return nil, false
}

// splitWords splits a line as go generate does: at spaces, except in double-quoted Go strings.
func splitWords(line string) []string {
	var words []string
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return words
		}
		if quoted, err := strconv.QuotedPrefix(line); err == nil && line[0] == '"' {
			word, _ := strconv.Unquote(quoted) // QuotedPrefix has checked it
			words = append(words, word)
			line = line[len(quoted):]
			continue
		}
		end := strings.IndexAny(line, " \t")
		if end < 0 {
			end = len(line)
		}
		words = append(words, line[:end])
		line = line[end:]
	}
}

// Covers reports whether the line generates code for the package in a directory. importPath is
// compared with patterns that are import paths. A Go file stands for its package.
func (l *Line) Covers(dir, importPath string) bool {
	if l.ReadsTools() {
		return false
	}
	if len(l.Packages) == 0 {
		return filepath.Clean(l.Config.Dir) == filepath.Clean(dir)
	}
	for _, pattern := range l.Packages {
		what := importPath
		if file := diag.Absolute(l.Config.Dir, pattern); filepath.Ext(file) == ".go" {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() { // such as $GOFILE
				pattern = "./" + path.Dir(filepath.ToSlash(pattern))
			}
		}
		if pattern == "." || pattern == ".." || strings.HasPrefix(pattern, "./") || strings.HasPrefix(pattern, "../") {
			pattern, what = path.Join(filepath.ToSlash(l.Config.Dir), pattern), filepath.ToSlash(filepath.Clean(dir))
		}
		if matchesPattern(pattern, what) {
			return true
		}
	}
	return false
}

// matchesPattern matches as go list does: "..." matches anything, and a final "/..." also matches
// nothing.
func matchesPattern(pattern, name string) bool {
	if pattern == name {
		return true
	}
	text := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\.\.\.`, ".*")
	if head, ok := strings.CutSuffix(text, "/.*"); ok {
		text = head + "(/.*)?"
	}
	ok, err := regexp.MatchString("^"+text+"$", name)
	return ok && err == nil
}

// GenerateSource is like [Flags.Generate] for a loaded package that the line covers. If the line
// has --tags, the go command loads the package again, because the source may have been built
// without them.
func (l *Line) GenerateSource(ctx context.Context, src generator.Source) (generator.Output, error) {
	cfg := l.Config
	if cfg.Tags == "" {
		return generator.GenerateSource(ctx, cfg, src)
	}
	cfg.Dir, cfg.Patterns = src.Dir, nil
	return generator.Generate(ctx, cfg)
}
