// Package rules records which rules of the specification a test has seen kept.
// It serves tests only.
package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// Most is how many rules one test function may claim, its subtests included: a
// test that claims more says little about each.
const Most = 8

// OutVariable names the environment variable with the file that the records are
// appended to, a line each: C-17 import/path.TestName. A relative path counts
// from the root of the module, since each package's tests run in its own folder.
const OutVariable = "MCPTASK_RULES_OUT"

var (
	mu      sync.Mutex
	claimed = map[string][]string{} // by test function
)

// Covers says that the test fails where one of the rules is broken. They are
// recorded once the test has passed, and not where it was skipped. A number
// that is in no rule book fails the test, and so does a ninth rule. Call it
// first, so that it sees how everything else ends.
func Covers(t testing.TB, ids ...string) {
	t.Helper()
	function, _, _ := strings.Cut(t.Name(), "/")
	pkg := callerPackage()
	book, err := loadRules()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if rule, ok := book[id]; !ok {
			t.Errorf("rules: there is no rule %s", id)
		} else if rule.NotObservable != "" {
			t.Errorf("rules: %s is marked as not observable", id)
		}
	}
	mu.Lock()
	for _, id := range ids {
		if !slices.Contains(claimed[function], id) {
			claimed[function] = append(claimed[function], id)
		}
	}
	if n := len(claimed[function]); n > Most {
		t.Errorf("rules: %s claims %d rules, %d are allowed: split it", function, n, Most)
	}
	mu.Unlock()
	t.Cleanup(func() {
		out := os.Getenv(OutVariable)
		if out == "" || t.Failed() || t.Skipped() {
			return
		}
		var lines strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&lines, "%s %s.%s\n", id, pkg, t.Name())
		}
		if err := appendRecords(out, lines.String()); err != nil {
			t.Errorf("rules: %v", err)
		}
	})
}

// appendRecords appends with one write, which other processes do not cut.
func appendRecords(file, lines string) error {
	if !filepath.IsAbs(file) {
		root, err := moduleRoot()
		if err != nil {
			return err
		}
		file = filepath.Join(root, file)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(lines); err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	return f.Close()
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the working directory: %s needs an absolute path", OutVariable)
		}
		dir = parent
	}
}

// callerPackage is the import path of the package that called Covers.
func callerPackage() string {
	pc, _, _, _ := runtime.Caller(2)
	name := runtime.FuncForPC(pc).Name() // path/to/pkg_test.TestX.func1
	slash := strings.LastIndex(name, "/")
	pkg, _, _ := strings.Cut(name[slash+1:], ".")
	return name[:slash+1] + strings.TrimSuffix(pkg, "_test")
}

// all is every rule of every revision, by its number.
var loadRules = sync.OnceValues(func() (map[string]schema.Rule, error) {
	book := map[string]schema.Rule{}
	for _, revision := range schema.Revisions() {
		rules, err := schema.Rules(revision)
		if err != nil {
			return nil, err
		}
		for _, r := range rules {
			book[r.ID] = r
		}
	}
	return book, nil
})
