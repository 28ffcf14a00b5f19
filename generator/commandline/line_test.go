package commandline_test

import (
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

func TestParseLine(t *testing.T) {
	t.Setenv("MCPTASK_TEST", "2026-07-28")
	for comment, want := range map[string]string{
		"//go:generate mcptaskgen":   "flags",
		"//go:generate mcptaskgen\r": "flags",
		"//go:generate go tool mcptaskgen --server-only --out server_gen.go":              "flags --out server_gen.go --server-only",
		"//go:generate go tool github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen":           "flags",
		"//go:generate go run github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@v1.2.3 ./a": "flags; for ./a",
		"//go:generate go run -tags x example.com/mcptaskgen --client-only":               "flags --client-only",
		`//go:generate "C:\\bin\\mcptaskgen.exe" --tags "a,b" --verbose --check`:          "flags --tags a,b",
		"//go:generate ../bin/mcptaskgen --tags=a,b  --verbose --check":                   "flags --tags a,b",
		"//go:generate mcptaskgen --revision $MCPTASK_TEST --out ${GOPACKAGE}_$GOFILE":    "flags --out p_a.go --revision 2026-07-28",
		`//go:generate mcptaskgen --tools "my list.json" --service Search`:                `flags --tools "my list.json" --service Search`,
		"//go:generate mcptaskgen docs --out TOOLS.md ./...":                              "docs flags --out TOOLS.md; for ./...",
		"//go:generate mcptaskgen docs --check --out TOOLS.md":                            "docs flags --out TOOLS.md",
		"//go:generate mcptaskgen docs":                                                   "",
		"//go:generate mcptaskgen upgrade":                                                "",
		"//go:generate mcptaskgen --help":                                                 "",
		"//go:generate stringer -type=mcptaskgen":                                         "",
		"//go:generate sh -c mcptaskgen":                                                  "",
		"//go:generate mcptaskgenerate":                                                   "",
		"// go:generate mcptaskgen":                                                       "",
		"//go:generate mcptaskgen --out":                                                  "error: flag needs an argument: --out",
		"//go:generate mcptaskgen --server_only":                                          "error: unknown flag: --server_only",
		"//go:generate mcptaskgen docs --uot TOOLS.md":                                    "error: unknown flag: --uot",
		"//go:generate mcptaskgen --server-only --client-only":                            "error: --server-only and --client-only together leave nothing to generate; use one of them",
		"//go:generate mcptaskgen --tools a.json --tags x":                                "error: --tags is for packages and cannot be used with --tools",
	} {
		line, err := commandline.ParseLine(comment, "/m/dir/a.go", "p")
		got := ""
		switch {
		case err != nil:
			got = "error: " + err.Error()
		case line != nil:
			got = strings.TrimSpace("flags " + line.String())
			if line.Docs {
				got = "docs " + got
			}
			if len(line.Packages) > 0 {
				got += "; for " + strings.Join(line.Packages, " ")
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", comment, got, want)
		}
	}
}

func TestIsFor(t *testing.T) {
	dir := t.TempDir()
	for patterns, want := range map[string]bool{
		"":                      true,
		".":                     true,
		"./":                    true,
		"./...":                 true,
		"./a":                   false,
		"./a/...":               false,
		"./a .":                 true,
		"..":                    false,
		"example.com/m/dir":     true,
		"example.com/m/...":     true,
		"example.com/m/dir/...": true,
		"example.com/m/di/...":  false,
		"example.com/elsewhere": false,
		"missing.go":            false,
		"--client-only ./a ./b": false,
	} {
		line, err := commandline.ParseLine(strings.TrimRight("//go:generate mcptaskgen "+patterns, " "), "a.go", "p")
		if err != nil || line == nil {
			t.Fatal(patterns, err)
		}
		if got := line.IsFor(dir, "example.com/m/dir"); got != want {
			t.Errorf("%s: got %v", patterns, got)
		}
	}
}
