package golden_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// row is a row of a table of SECURITY.md: the thing that is bounded, the bound, and its source.
var row = regexp.MustCompile("(?m)^\\| [^|]+ \\| ([0-9,]+)( [A-Za-z]+)? \\| `([^`|]+)` \\|$")

// TestSecurityClaims compares SECURITY.md with the code: the tests that it names exist, and its numbers are those of the
// code.
func TestSecurityClaims(t *testing.T) {
	text := readFile(t, "../SECURITY.md")
	tests := testsOfTheModule(t)
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(text, -1) {
		if !tests[name[1]] {
			t.Errorf("SECURITY.md names %s, which is no test", name[1])
		}
	}
	s, err := taskserver.New(taskserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	options := reflect.ValueOf(s.Backend().Options())
	limits := options.FieldByName("Limits")
	said := map[string]bool{}
	constants := map[string]*types.Scope{}
	for _, cells := range row.FindAllStringSubmatch(text, -1) {
		want := quantity(t, cells[1], strings.TrimSpace(cells[2]))
		source := cells[3]
		said[source] = true
		var got int64
		if name, ok := strings.CutPrefix(source, "Limits."); ok {
			got = intOf(t, source, limits, name)
		} else if name, ok := strings.CutPrefix(source, "Options."); ok {
			got = intOf(t, source, options, name)
		} else {
			dot := strings.LastIndexByte(source, '.')
			dir := source[:dot]
			if constants[dir] == nil {
				constants[dir] = readConstants(t, filepath.Join("..", filepath.FromSlash(dir)))
			}
			if c, ok := constants[dir].Lookup(source[dot+1:]).(*types.Const); ok {
				got, _ = constant.Int64Val(constant.ToInt(c.Val()))
			} else {
				t.Errorf("SECURITY.md names the constant %s, which does not exist", source)
			}
		}
		if got != want {
			t.Errorf("SECURITY.md says %s%s for %s, which is %d", cells[1], cells[2], source, got)
		}
	}
	for i := range limits.NumField() {
		if name := "Limits." + limits.Type().Field(i).Name; limits.Field(i).CanInt() && !said[name] {
			t.Errorf("SECURITY.md has no row for %s", name)
		}
	}
}

// testsOfTheModule returns the names of all test functions.
func testsOfTheModule(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, name := range function.FindAllStringSubmatch(string(source), -1) {
			names[name[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// quantity reads a number with its unit.
func quantity(t *testing.T, number, unit string) (n int64) {
	t.Helper()
	units := map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "milliseconds": int64(time.Millisecond), "second": int64(time.Second),
		"seconds": int64(time.Second), "minutes": int64(time.Minute), "days": int64(24 * time.Hour)}
	if _, err := fmt.Sscan(strings.ReplaceAll(number, ",", ""), &n); err != nil || units[unit] == 0 {
		t.Errorf("SECURITY.md says %q %q, which is no quantity", number, unit)
	}
	return n * units[unit]
}

// intOf returns the value of a field, whose name may have dots.
func intOf(t *testing.T, source string, from reflect.Value, name string) int64 {
	t.Helper()
	for _, part := range strings.Split(name, ".") { // a field may be a struct of its own
		if from = from.FieldByName(part); !from.IsValid() {
			t.Errorf("SECURITY.md names %s, which does not exist", source)
			return 0
		}
	}
	if !from.CanInt() {
		t.Errorf("SECURITY.md names %s, which is no number", source)
		return 0
	}
	return from.Int()
}

// readConstants reads the constants of a directory, those of its tests included. The rest of the directory need not
// type-check: only package time is imported.
func readConstants(t *testing.T, dir string) *types.Scope {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		file.Name.Name = "p" // the tests may be another package
		files = append(files, file)
	}
	config := types.Config{Importer: onlyTime{}, IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := config.Check(dir, fset, files, nil) // the errors of missing imports
	return pkg.Scope()
}

type onlyTime struct{}

// Import implements types.Importer with the part of package time that constants need.
func (onlyTime) Import(path string) (*types.Package, error) {
	if path != "time" {
		return nil, errors.New("not imported")
	}
	const source = "package time; type Duration int64; const (Millisecond Duration = 1e6; Second = 1000 * Millisecond; Minute = 60 * Second; Hour = 60 * Minute)"
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "time.go", source, 0)
	if err != nil {
		return nil, err
	}
	return new(types.Config).Check(path, fset, []*ast.File{file}, nil)
}
