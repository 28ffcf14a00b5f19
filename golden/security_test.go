package golden_test

import (
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

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// row is a row of a table of SECURITY.md: what is bounded, its value, and where it comes from.
var row = regexp.MustCompile("(?m)^\\| [^|]+ \\| ([0-9,]+)( [A-Za-z]+)? \\| `([^`|]+)` \\|$")

// TestSecurityClaims holds SECURITY.md against the code: the tests that it names exist, and its numbers are those of
// the code.
func TestSecurityClaims(t *testing.T) {
	text := readFile(t, "../SECURITY.md")
	tests := testsOfTheModule(t)
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(text, -1) {
		if !tests[name[1]] {
			t.Errorf("SECURITY.md names %s, which is no test", name[1])
		}
	}
	s, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	options := reflect.ValueOf(s.Options())
	limits := options.FieldByName("Limits")
	said := map[string]bool{}
	constants := map[string]map[string]ast.Expr{}
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
			folder := source[:dot]
			if constants[folder] == nil {
				constants[folder] = readConstants(t, filepath.Join("..", filepath.FromSlash(folder)))
			}
			got = evaluateConstant(t, constants[folder], source[dot+1:])
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

// testsOfTheModule are the names of all test functions.
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

// intOf is a field of a struct that holds whole numbers.
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

// readConstants reads the constants in the Go files of a folder, tests included.
func readConstants(t *testing.T, folder string) map[string]ast.Expr {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]ast.Expr{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if list, ok := declaration.(*ast.GenDecl); ok && list.Tok == token.CONST {
				for _, spec := range list.Specs {
					values := spec.(*ast.ValueSpec)
					for i, value := range values.Values {
						constants[values.Names[i].Name] = value
					}
				}
			}
		}
	}
	return constants
}

// evaluateConstant evaluates a constant by its source, since it may be of a test.
func evaluateConstant(t *testing.T, constants map[string]ast.Expr, name string) int64 {
	t.Helper()
	var text func(ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BinaryExpr:
			return "(" + text(e.X) + e.Op.String() + text(e.Y) + ")"
		case *ast.ParenExpr:
			return text(e.X)
		case *ast.BasicLit:
			return e.Value
		case *ast.Ident:
			if value := constants[e.Name]; value != nil {
				return text(value)
			}
		case *ast.SelectorExpr:
			if unit, ok := map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}[e.Sel.Name]; ok {
				return fmt.Sprint(int64(unit))
			}
		}
		return "unknown"
	}
	if constants[name] == nil {
		t.Errorf("SECURITY.md names the constant %s, which does not exist", name)
		return 0
	}
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text(constants[name]))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return 0
	}
	n, _ := constant.Int64Val(constant.ToInt(value.Value))
	return n
}
