package generator

import "testing"

func TestNameRevisions(t *testing.T) {
	for line, want := range map[string]string{
		"//go:generate mcptaskgen\n":                                                           "//go:generate mcptaskgen\n",
		"//go:generate go tool mcptaskgen --revision 2025-11-25\n":                             "//go:generate go tool mcptaskgen --revision A,B\n",
		"//go:generate mcptaskgen --revision=2025-11-25 ./...\r\n":                             "//go:generate mcptaskgen --revision=A,B ./...\r\n",
		`//go:generate mcptaskgen --revision "2025-11-25,2026-07-28" --out "a b.go"`:           `//go:generate mcptaskgen --revision "A,B" --out "a b.go"`,
		"//go:generate mcptaskgen --revision x --out y.go --revision z ./a":                    "//go:generate mcptaskgen --revision A,B --out y.go ./a",
		"//go:generate mcptaskgen  --revision=x\t--revision=y --server-only":                   "//go:generate mcptaskgen  --revision=A,B --server-only",
		"//go:generate mcptaskgen --revision $REVISION":                                        "//go:generate mcptaskgen --revision A,B",
		"//go:generate mcptaskgen --schema a.json --out y.go --schema b.json":                  "//go:generate mcptaskgen --revision A,B --out y.go",
		"//go:generate mcptaskgen --revision=x --schema=a.json ./a":                            "//go:generate mcptaskgen --revision=A,B ./a",
		"//go:generate mcptaskgen --out --revision":                                            "//go:generate mcptaskgen --out --revision",
		"//go:generate go run github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@v1 --revision é": "//go:generate go run github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@v1 --revision A,B",
	} {
		if got := nameRevisions(line, []string{"A", "B"}); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// TestRevisedLines checks that a line is only taken as revised if nothing but its revisions has changed.
func TestRevisedLines(t *testing.T) {
	u := upgrader{wanted: []string{"2026-07-28"}}
	for line, want := range map[string]bool{
		"//go:generate mcptaskgen --revision 2025-11-25 --server-only\n":                                true,
		`//go:generate mcptaskgen --revision "2025-11-25,2026-07-28" --out "a b.go"`:                    true,
		"//go:generate mcptaskgen --schema a.json --out y.go --schema b.json ./...":                     true,
		`//go:generate mcptaskgen "--revision=2025-11-25" --revision task-patterns`:                     false,
		`//go:generate mcptaskgen "--revision" 2025-11-25 --schema x.json`:                              false,
		`//go:generate mcptaskgen --out "a --revision 2025-11-25_gen.go" --revision=2025-11-25`:         false,
		`//go:generate mcptaskgen "--revision=2025-11-25"`:                                              false,
		`//go:generate mcptaskgen --out "a --revision 2025-11-25_gen.go" "--revision=2025-11-25" ./...`: false,
	} {
		if got := u.isRevised(line, nameRevisions(line, u.wanted)); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}
