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
)

// Line is a line for go generate that runs mcptaskgen. It is not safe for concurrent use.
type Line struct {
	Flags

	Packages []string // the patterns; none is the folder of the line
	File     string   // that it stands in
	Number   int      // in the file, from 1; 0 where it was parsed as a comment alone
}

// other are the flags of the command that do not change what is generated.
var other = []string{"check", "diff", "prune", "verbose", "version"}

// ParseLine reads the text of a comment in a Go file, of which it needs the path and the name of the
// package. It returns nil where the comment is no line for go generate that has mcptaskgen generate:
// as itself, by go tool or by go run. The error says what is wrong with its arguments.
func ParseLine(comment, file, pkg string) (*Line, error) {
	args, ok := arguments(comment, file, pkg)
	if !ok {
		return nil, nil
	}
	line := &Line{File: file}
	set := pflag.NewFlagSet("mcptaskgen", pflag.ContinueOnError)
	set.Usage = func() {}
	line.Add(set)
	for _, name := range other {
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

// command is the first word after mcptaskgen where it does not generate, such as docs.
var command = regexp.MustCompile(`^[a-z]+$`)

// arguments are what mcptaskgen gets from a line.
func arguments(comment, file, pkg string) ([]string, bool) {
	text, ok := strings.CutPrefix(comment, "//go:generate")
	if !ok || strings.TrimLeft(text, " \t") == text || !strings.Contains(text, "mcptaskgen") {
		return nil, false
	}
	words := split(strings.TrimRight(text, "\r"))
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
		return args, (i == 0 || byGo) && (len(args) == 0 || !command.MatchString(args[0]))
	}
	return nil, false
}

// split is what go generate does: words between spaces, and Go strings in double quotes.
func split(line string) []string {
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

// Covers tells whether the line generates for the package in a folder, by its import path where the
// patterns are import paths. A Go file stands for its package, which has one generated file.
func (l *Line) Covers(dir, importPath string) bool {
	if l.ReadsTools() {
		return false
	}
	if len(l.Packages) == 0 {
		return filepath.Clean(l.Config.Dir) == filepath.Clean(dir)
	}
	for _, pattern := range l.Packages {
		what := importPath
		if file := absolute(l.Config.Dir, pattern); filepath.Ext(file) == ".go" {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() { // as $GOFILE is
				pattern = "./" + path.Dir(filepath.ToSlash(pattern))
			}
		}
		if pattern == "." || pattern == ".." || strings.HasPrefix(pattern, "./") || strings.HasPrefix(pattern, "../") {
			pattern, what = path.Join(filepath.ToSlash(l.Config.Dir), pattern), filepath.ToSlash(filepath.Clean(dir))
		}
		if matches(pattern, what) {
			return true
		}
	}
	return false
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// matches is what go list does with a pattern: ... is anything, and /... at its end also nothing.
func matches(pattern, name string) bool {
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

// GenerateSource is [Flags.Generate] for a package that is loaded already, where the line covers it.
// With --tags it is loaded again, by the go command: the source may have been built without them.
func (l *Line) GenerateSource(ctx context.Context, src generator.Source) (generator.Output, error) {
	cfg := l.Config
	if cfg.Tags == "" {
		return generator.GenerateSource(ctx, cfg, src)
	}
	cfg.Dir, cfg.Patterns = src.Dir, nil
	return generator.Generate(ctx, cfg)
}
