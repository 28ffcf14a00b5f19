package structure_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/structure"
)

var update = flag.Bool("update", false, "rewrite the files in testdata/api")

// TestAPI compares the exported names of the public packages with testdata/api. Generated code and
// users' programs depend on them. TestStructure in examples/temporal does so for
// the module runtime/temporal.
func TestAPI(t *testing.T) {
	loaded := loadPackages(t)
	for _, path := range publicPackages {
		p := loaded[path]
		if p == nil {
			t.Errorf("%s was not loaded", path)
			continue
		}
		file := filepath.Join("testdata", "api", strings.ReplaceAll(path, "/", "-")+".txt")
		structure.CheckAPI(t, p, file, *update, "go test ./golden/structure -run TestAPI -update")
	}
}
