package commandline

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Line is a //go:generate line that runs mcptaskgen.
type Line struct {
	Flags

	// Docs is set if the line runs mcptaskgen docs. Out is then the file of the reference.
	Docs bool
	// Packages are the patterns. Empty means the package in the directory of the line.
	Packages []string
}

// ParseLine reads the text of a comment in a Go file. It needs the path of the file and the name of
// its package, which the line may refer to. It returns nil if the comment is not a //go:generate line
// that runs mcptaskgen, directly or by go tool or go run, to write a file. The error reports invalid
// arguments.
func ParseLine(comment, file, pkg string) (*Line, error) {
	words, ok := findArguments(comment, file, pkg)
	if !ok {
		return nil, nil
	}
	line := &Line{}
	var err error
	switch {
	case len(words) == 0 || !isCommand(words[0]):
		line.Packages, err = line.parse(words)
	case words[0] == "docs":
		set := pflag.NewFlagSet("mcptaskgen docs", pflag.ContinueOnError)
		set.Usage = func() {}
		set.StringVar(&line.Out, "out", "", "")
		set.StringVar(&line.Tags, "tags", "", "")
		set.Bool("check", false, "")
		set.Bool("verbose", false, "")
		err = set.Parse(words[1:])
		line.Docs, line.Packages = true, set.Args()
	default:
		return nil, nil
	}
	switch {
	case errors.Is(err, pflag.ErrHelp) || err == nil && line.Docs && line.Out == "":
		return nil, nil
	case err == nil && !line.Docs:
		err = line.Check(line.Packages)
	}
	if err != nil {
		return nil, err
	}
	return line, nil
}

// IsFor reports whether the line generates code for the package that it is in, which has that import
// path and is in that directory. A Go file stands for its package.
func (l *Line) IsFor(dir, importPath string) bool {
	return len(l.Packages) == 0 || slices.ContainsFunc(l.Packages, func(pattern string) bool {
		if filepath.Ext(pattern) == ".go" {
			info, err := os.Stat(filepath.Join(dir, pattern))
			return err == nil && info.Mode().IsRegular() && path.Dir(filepath.ToSlash(pattern)) == "."
		}
		head, below := strings.CutSuffix(filepath.ToSlash(pattern), "/...")
		return path.Clean(head) == "." || head == importPath || below && strings.HasPrefix(importPath, head+"/")
	})
}

// findArguments returns the arguments that a line passes to mcptaskgen.
func findArguments(comment, file, pkg string) ([]string, bool) {
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
		if path.Base(program) == "mcptaskgen" {
			byGo := i >= 2 && words[0] == "go" && (words[1] == "tool" || words[1] == "run")
			return words[i+1:], i == 0 || byGo
		}
	}
	return nil, false
}

func isCommand(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' })
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
