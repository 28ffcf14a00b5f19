// Package rules records which rules of the specification passing tests cover. It is for tests only.
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

// Most is the maximum number of rules that a test function and its subtests may claim. A test that
// claims more proves little about each.
const Most = 8

// OutVariable is the environment variable with the name of the file that receives the records, one
// per line: C-17 import/path.TestName. A relative path is relative to the root of the module,
// because each package's tests run in their own directory.
const OutVariable = "MCPTASK_RULES_OUT"

var (
	mu      sync.Mutex
	claimed = map[string][]string{} // by test function
)

// Covers declares that the test fails if one of the rules is broken. It records the rules after the
// test has passed, but not if the test was skipped. An unknown rule fails the test, and so do more
// than [Most] rules. Call Covers first, so that its cleanup sees how the test ends.
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
			t.Errorf("rules: unknown rule %s", id)
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
		t.Errorf("rules: %s claims %d rules, more than %d: split it", function, n, Most)
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

// appendRecords appends with a single write, so that records of several processes do not mix.
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

// callerPackage returns the import path of the package that called Covers.
func callerPackage() string {
	pc, _, _, _ := runtime.Caller(2)
	name := runtime.FuncForPC(pc).Name() // path/to/pkg_test.TestX.func1
	slash := strings.LastIndex(name, "/")
	pkg, _, _ := strings.Cut(name[slash+1:], ".")
	return name[:slash+1] + strings.TrimSuffix(pkg, "_test")
}

// loadRules returns every rule of every revision by number.
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
