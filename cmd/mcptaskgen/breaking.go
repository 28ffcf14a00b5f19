package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

const breakingUsage = `mcptaskgen breaking says what the declarations of now break for callers and stored tasks of another state.

Usage:
  mcptaskgen breaking --against git:main [flags] [packages]
  mcptaskgen breaking --against ../other-checkout [flags] [packages]

It compares what it would generate now with the generated files of the other state: their tools, schemas,
policies, questions and errors. git:REF is a commit, such as git:main or git:v1.2.0. Anything else is the
directory of another checkout of the same module. Nothing is fetched, written or run.

Each finding has the place of the declaration and a rule, such as argument-required. To allow one, write
above the method (for its arguments and result too), the service, or the type under mcptask:input or
mcptask:error:

  //mcptask:allow breaking=argument-required reason="no caller is left"

An allowed finding is still printed, with the reason, but does not count for the exit code. Remove the
directive after the merge: it would allow the next finding of the rule there too.

Packages are patterns as for go list. The default is the package in the current directory.

Flags:
`

type breakingFlags struct {
	cfg     generator.BreakingConfig
	format  string
	tags    string
	verbose bool
}

func breakingCommand() command {
	return command{name: "breaking", usage: breakingUsage, after: exitCodes, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		var f breakingFlags
		flags.StringVar(&f.cfg.Against, "against", "", "the other state: git:REF, or a directory")
		flags.StringArrayVar(&f.cfg.Allow, "allow", nil, "allow the findings of a rule; may be repeated")
		flags.BoolVar(&f.cfg.Models, "models", false, "report changed texts too, such as descriptions")
		flags.StringVar(&f.format, "format", "text", "text, json, or github for annotations in a pull request")
		flags.StringVar(&f.tags, "tags", "", "the build tags of the declarations, comma-separated")
		flags.BoolVar(&f.verbose, "verbose", false, "say on standard error how long each step took")
		return f.run
	}}
}

func (f *breakingFlags) run(ctx context.Context, i invocation) int {
	switch {
	case f.cfg.Against == "":
		return i.printError(errors.New("mcptaskgen breaking: name the other state with --against, such as --against git:main"))
	case f.format != "text" && f.format != "json" && f.format != "github":
		return i.printError(fmt.Errorf("mcptaskgen breaking: --format %s is unknown; use text, json or github", f.format))
	}
	steps := generateFlags{verbose: f.verbose}
	begin := time.Now()
	out, err := generator.Generate(ctx, generator.Config{
		Patterns: i.args, Flags: commandline.Flags{Tags: f.tags}, Own: true, Removed: true, Step: steps.logSteps(i),
	})
	if err != nil {
		return i.printError(err)
	}
	code := f.report(ctx, i, out)
	steps.logSteps(i)("all", time.Since(begin))
	return code
}

// report compares the generated files with the other state and prints the findings.
func (f *breakingFlags) report(ctx context.Context, i invocation, out generator.Output) int {
	findings, notes, err := out.Breaking(ctx, f.cfg)
	if err != nil {
		return i.printError(fmt.Errorf("mcptaskgen breaking: %w", err))
	}
	for _, note := range notes {
		fmt.Fprintln(i.stderr, note)
	}
	code := exitOK
	for _, finding := range findings {
		if finding.Allowed == "" {
			code = exitDifferences
		}
		switch {
		case f.format == "json":
			fmt.Fprintln(i.stdout, jsonFinding(finding))
		case f.format == "github":
			finding.Pos.Filename = pathInRepository(out.Dir, finding.Pos.Filename)
			fmt.Fprintln(i.stdout, githubFinding(finding))
		case finding.Allowed != "":
			fmt.Fprintln(i.stderr, finding)
		default:
			fmt.Fprintf(i.stdout, "%s\n\thint: %s\n", finding, finding.Hint)
		}
	}
	return code
}

// jsonFinding returns a finding as an object on one line.
func jsonFinding(f generator.Finding) string {
	text, _ := json.Marshal(struct { // strings and numbers always have JSON
		File    string   `json:"file"`
		Line    int      `json:"line,omitempty"`
		Column  int      `json:"column,omitempty"`
		Rule    string   `json:"rule"`
		Message string   `json:"message"`
		Breaks  []string `json:"breaks"`
		Hint    string   `json:"hint"`
		Allowed string   `json:"allowed,omitempty"`
	}{f.Pos.Filename, f.Pos.Line, f.Pos.Column, f.Rule, f.Message, f.Breaks, f.Hint, f.Allowed})
	return string(text)
}

// Escapes of a workflow command of GitHub Actions. A property has two more.
var (
	githubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// pathInRepository returns the slash-separated path of a file from the top of its git repository, or the name as it is if
// there is none.
func pathInRepository(dir, name string) string {
	full := name
	if !filepath.IsAbs(name) {
		full = filepath.Join(dir, name)
	}
	for top := dir; ; top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, ".git")); err == nil {
			if rel, err := filepath.Rel(top, full); err == nil {
				name = rel
			}
			return filepath.ToSlash(name)
		}
		if top == filepath.Dir(top) {
			return filepath.ToSlash(name)
		}
	}
}

// githubFinding returns a finding as an annotation of GitHub Actions.
func githubFinding(f generator.Finding) string {
	place := "file=" + githubProperty.Replace(f.Pos.Filename)
	if f.Pos.IsValid() {
		place += fmt.Sprintf(",line=%d,col=%d", f.Pos.Line, f.Pos.Column)
	}
	kind, text := "error", fmt.Sprintf("%s (breaks %s); %s", f.Message, strings.Join(f.Breaks, " and "), f.Hint)
	if f.Allowed != "" {
		kind, text = "notice", fmt.Sprintf("allowed: %s (%s)", f.Message, f.Allowed)
	}
	return fmt.Sprintf("::%s %s,title=%s::%s", kind, place, githubProperty.Replace(f.Rule), githubData.Replace(text))
}
