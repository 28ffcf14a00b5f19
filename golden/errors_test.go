package golden_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

// errorModule is the path of the module that the error cases are written for.
const errorModule = "example.com/p"

// errorCase is an archive of errors: a module, and in the file stderr the generator's errors.
type errorCase struct {
	path, directory string // directory holds it in the module that all cases share
	patterns        []string
	portable        bool // with the flag --portable, if that is the first line of the archive
	files           []txtar.File
	want            string
	got             string
}

// TestErrors runs the generator on each archive and compares its errors with the file stderr. The cases are packages of
// one module, because the go command takes longer than everything else and so runs for all of them at once. With
// -update, and if the message has no place that tells the case, a case is a module of its own.
func TestErrors(t *testing.T) {
	archives, err := filepath.Glob("errors/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	root := t.TempDir()
	writeStub(t, root)
	together := filepath.Join(root, "together")
	writeModule(t, together, errorModule)
	var cases, pending []*errorCase
	for _, path := range archives {
		c := readErrorCase(t, path)
		cases = append(cases, c)
		if *update || c.portable || !errorPlace.MatchString(c.want) {
			c.generateAlone(t, filepath.Join(root, c.directory))
			continue
		}
		c.writeTo(t, together)
		pending = append(pending, c)
	}
	generateTogether(t, together, pending)
	for _, c := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(c.path), ".txtar"), func(t *testing.T) {
			if c.got == "" {
				t.Fatal("no error")
			}
			if *update {
				c.update(t)
			} else if d := cmp.Diff(lines(c.want), lines(c.got)); d != "" {
				t.Errorf("stderr (-want +got):\n%s", d)
			}
		})
	}
}

func readErrorCase(t *testing.T, path string) *errorCase {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &errorCase{path: path, directory: "case-" + strings.TrimSuffix(filepath.Base(path), ".txtar"), patterns: []string{"."}}
	for _, file := range archive.Files {
		if file.Name == "stderr" {
			c.want = string(file.Data)
		} else {
			c.files = append(c.files, file)
		}
	}
	first, _, _ := strings.Cut(string(archive.Comment), "\n")
	if patterns, ok := strings.CutPrefix(first, "patterns: "); ok {
		c.patterns = strings.Fields(patterns)
	}
	c.portable = first == "--portable"
	return c
}

func (c *errorCase) generateAlone(t *testing.T, dir string) {
	t.Helper()
	writeModule(t, dir, errorModule)
	for _, file := range c.files {
		writeFile(t, filepath.Join(dir, file.Name), string(file.Data))
	}
	cfg := generator.Config{Dir: dir, Patterns: c.patterns, Flags: commandline.Flags{Portable: c.portable}}
	if _, err := generator.Generate(t.Context(), cfg); err != nil {
		c.got = err.Error() + "\n"
	}
}

// writeTo writes the case into its directory of a module, whose path then stands in its imports.
func (c *errorCase) writeTo(t *testing.T, dir string) {
	t.Helper()
	for _, file := range c.files {
		content := strings.ReplaceAll(string(file.Data), `"`+errorModule+"/", `"`+errorModule+"/"+c.directory+"/")
		writeFile(t, filepath.Join(dir, c.directory, file.Name), content)
	}
}

// update writes the generator's errors into the archive.
func (c *errorCase) update(t *testing.T) {
	t.Helper()
	archive, err := txtar.ParseFile(c.path)
	if err != nil {
		t.Fatal(err)
	}
	archive.Files = append(c.files, txtar.File{Name: "stderr", Data: []byte(c.got)})
	if err := os.WriteFile(c.path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// errorPlace starts the message of a mistake, and caseLine does in the module that cases share.
var (
	errorPlace = regexp.MustCompile(`^[\w./-]+:\d+:\d+: `)
	caseLine   = regexp.MustCompile(`^(case-[\w-]+)/[\w./-]+:\d+:\d+: `)
)

// generateTogether fills in the generator's errors for each case. An error that keeps a package from being loaded hides
// the mistakes in all others. So the cases with an error leave, and the others have another turn.
func generateTogether(t *testing.T, dir string, pending []*errorCase) {
	t.Helper()
	for len(pending) > 0 {
		cfg := generator.Config{Dir: dir}
		for _, c := range pending {
			for _, pattern := range c.patterns {
				cfg.Patterns = append(cfg.Patterns, "./"+c.directory+strings.TrimPrefix(pattern, "."))
			}
		}
		_, err := generator.Generate(t.Context(), cfg)
		if err == nil {
			return // the cases that are left have no error, which TestErrors reports
		}
		said, directory := map[string]string{}, ""
		for line := range strings.Lines(err.Error() + "\n") {
			if match := caseLine.FindStringSubmatch(line); match != nil {
				directory = match[1]
			}
			said[directory] += line
		}
		var left []*errorCase
		for _, c := range pending {
			if c.got = said[c.directory]; c.got == "" {
				left = append(left, c)
			}
			c.got = strings.ReplaceAll(strings.ReplaceAll(c.got, errorModule+"/"+c.directory, errorModule), c.directory+"/", "")
		}
		if len(left) == len(pending) {
			t.Fatalf("the errors name no case:\n%v", err)
		}
		pending = left
	}
}
