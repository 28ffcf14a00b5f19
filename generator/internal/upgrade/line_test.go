package upgrade

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
	const file = "package p\n\n//go:generate mcptaskgen --revision x\n// --revision x\n//go:generate mcptaskgen docs --revision x"
	const want = "package p\n\n//go:generate mcptaskgen --revision A\n// --revision x\n//go:generate mcptaskgen docs --revision x"
	if got, ok := RewriteLine(file, 3, []string{"A"}); got != want || !ok {
		t.Errorf("got %q", got)
	}
}

func TestReadEmitted(t *testing.T) {
	const server = "package p\n\nconst (\n\tCodeA = 1\n\tlower = 2\n)\n\nfunc taskCapabilities() m { return m{\"B\": `x`, \"A\": `y`} }\n"
	if e := parseGeneratedFile([]byte(server)); len(e.revisions) != 2 || e.revisions[0] != "B" || len(e.names) != 1 {
		t.Errorf("got %+v", e)
	}
	if e := parseGeneratedFile([]byte("<<<<<<< HEAD\n")); e.revisions != nil || e.names != nil {
		t.Errorf("got %+v", e)
	}
}
