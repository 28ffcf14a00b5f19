package rules

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fake is a test that Covers is called from.
type fake struct {
	testing.TB

	name            string
	failed, skipped bool
	said            []string
	cleanups        []func()
}

func (f *fake) Helper()          {}
func (f *fake) Name() string     { return f.name }
func (f *fake) Failed() bool     { return f.failed }
func (f *fake) Skipped() bool    { return f.skipped }
func (f *fake) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fake) Errorf(format string, args ...any) {
	f.failed, f.said = true, append(f.said, fmt.Sprintf(format, args...))
}

// end ends the test and returns the records so far.
func (f *fake) end(t *testing.T, out string) string {
	t.Helper()
	for _, c := range slices.Backward(f.cleanups) {
		c()
	}
	data, err := os.ReadFile(out)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

// TestCovers uses rules that do not exist, so its records go to a file that is thrown away.
func TestCovers(t *testing.T) {
	const pkg = "github.com/mcptaskgen/mcptaskgen/schema/rules"
	fresh := func(t *testing.T) string {
		out := filepath.Join(t.TempDir(), "records")
		t.Setenv(OutVariable, out)
		return out
	}
	t.Run("a test that passed", func(t *testing.T) {
		out := fresh(t)
		f, g := &fake{TB: t, name: "TestPassed"}, &fake{TB: t, name: "TestOther/sub_test"}
		Covers(f, "C-17", "E-11")
		Covers(g, "C-17")
		if _, err := os.Stat(out); err == nil {
			t.Error("it was recorded before it had passed")
		}
		f.end(t, out)
		want := "C-17 " + pkg + ".TestPassed\nE-11 " + pkg + ".TestPassed\nC-17 " + pkg + ".TestOther/sub_test\n"
		if got := g.end(t, out); got != want {
			t.Errorf("recorded:\n%swant:\n%s", got, want)
		}
	})
	for name, ends := range map[string]func(f *fake){
		"a test that failed later":      func(f *fake) { f.failed = true },
		"a test that was skipped later": func(f *fake) { f.skipped = true },
	} {
		t.Run(name, func(t *testing.T) {
			out := fresh(t)
			f := &fake{TB: t, name: "TestEnds"}
			Covers(f, "C-17")
			ends(f)
			if got := f.end(t, out); got != "" {
				t.Errorf("recorded: %s", got)
			}
		})
	}
	t.Run("records are not wanted", func(t *testing.T) {
		t.Setenv(OutVariable, "")
		f := &fake{TB: t, name: "TestQuiet"}
		Covers(f, "C-17")
		if f.end(t, os.DevNull); f.failed {
			t.Error(f.said)
		}
	})
	t.Run("a rule that there is not", func(t *testing.T) {
		out := fresh(t)
		for i, id := range []string{"C-107", "C-1", "c-17", "", "X-01"} {
			f := &fake{TB: t, name: fmt.Sprint("TestUnknown", i)}
			if Covers(f, "C-17", id); !f.failed || f.end(t, out) != "" {
				t.Errorf("%q was taken: %v", id, f.said)
			}
		}
	})
	t.Run("a rule that cannot be tested", func(t *testing.T) {
		out := fresh(t)
		f := &fake{TB: t, name: "TestMarked"}
		if Covers(f, "E-10"); !f.failed || f.end(t, out) != "" {
			t.Errorf("taken: %v", f.said)
		}
	})
	t.Run("a ninth rule", func(t *testing.T) {
		out := fresh(t)
		eight := []string{"C-01", "C-02", "C-03", "C-04", "C-05", "C-06", "C-07", "C-08"}
		f, sub, other := &fake{TB: t, name: "TestMany"}, &fake{TB: t, name: "TestMany/sub"}, &fake{TB: t, name: "TestOthers"}
		Covers(f, eight...)
		Covers(f, eight[0])   // again
		Covers(sub, eight[1]) // again, by a part of the test
		Covers(other, "C-09") // by another test
		if f.failed || sub.failed || other.failed {
			t.Fatalf("refused: %v %v %v", f.said, sub.said, other.said)
		}
		if Covers(sub, "C-09"); !sub.failed || !strings.Contains(sub.said[0], "TestMany claims 9 rules, more than 8") {
			t.Errorf("taken: %v", sub.said)
		}
		if got := sub.end(t, out); got != "" {
			t.Errorf("recorded: %s", got)
		}
	})
	t.Run("a relative path", func(t *testing.T) {
		root := t.TempDir()
		below := filepath.Join(root, "a", "b")
		if err := errors.Join(os.MkdirAll(below, 0o700), os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		t.Chdir(below)
		t.Setenv(OutVariable, "records")
		f := &fake{TB: t, name: "TestRelative"}
		Covers(f, "C-17")
		if got := f.end(t, filepath.Join(root, "records")); got != "C-17 "+pkg+".TestRelative\n" || f.failed {
			t.Errorf("recorded: %s %v", got, f.said)
		}
	})
	t.Run("a file that cannot be written", func(t *testing.T) {
		t.Setenv(OutVariable, t.TempDir())
		f := &fake{TB: t, name: "TestUnwritten"}
		Covers(f, "C-17")
		for _, c := range f.cleanups {
			c()
		}
		if !f.failed {
			t.Error("the test did not fail")
		}
	})
}

// TestCoversInTests runs go test over testdata, whose tests pass, fail and are
// skipped.
func TestCoversInTests(t *testing.T) {
	out := filepath.Join(t.TempDir(), "records")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./testdata/ends")
	cmd.Env = append(os.Environ(), OutVariable+"="+out)
	said, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("nothing failed:\n%s", said)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	const pkg = "github.com/mcptaskgen/mcptaskgen/schema/rules/testdata/ends."
	want := []string{"C-01 " + pkg + "TestPasses", "C-02 " + pkg + "TestPasses", "C-03 " + pkg + "TestParts/passes", "C-06 " + pkg + "TestParallel"}
	got := strings.Split(strings.TrimSpace(string(data)), "\n")
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("recorded:\n%s\nwant:\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), said)
	}
}

// TestOnlyGo checks that no rule counts as covered by a test that needs programs of others. If the tests of a package
// run such programs, none of them calls Covers.
func TestOnlyGo(t *testing.T) {
	const root = "../.."
	const module = "github.com/mcptaskgen/mcptaskgen/"
	peers, covering := map[string]string{}, map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "node_modules" || name == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			switch imported, err := strconv.Unquote(spec.Path.Value); {
			case err != nil:
				return err
			case imported == module+"examples/internal/peer":
				peers[filepath.Dir(path)] = path
			case imported == module+"schema/rules":
				covering[filepath.Dir(path)] = path
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(peers) == 0 || len(covering) == 0 {
		t.Errorf("%d packages run programs, %d cover rules: nothing was compared", len(peers), len(covering))
	}
	for directory, file := range peers {
		if covering[directory] != "" {
			t.Errorf("%s needs programs of others, and %s covers rules", file, covering[directory])
		}
	}
}
