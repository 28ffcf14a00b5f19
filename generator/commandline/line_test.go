package commandline_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

func TestParseLine(t *testing.T) {
	t.Setenv("MCPTASK_TEST", "2026-07-28")
	for comment, want := range map[string]string{
		"//go:generate mcptaskgen":   "out=mcptask_gen.go",
		"//go:generate mcptaskgen\r": "out=mcptask_gen.go",
		"//go:generate go tool mcptaskgen --server-only --out server_gen.go":              "out=server_gen.go server",
		"//go:generate go tool github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen":           "out=mcptask_gen.go",
		"//go:generate go run github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@v1.2.3 ./a": "out=mcptask_gen.go ./a",
		"//go:generate go run -tags x example.com/mcptaskgen --client-only":               "out=mcptask_gen.go client",
		`//go:generate "C:\\bin\\mcptaskgen.exe" --tags "a,b" --verbose --prune`:          "out=mcptask_gen.go tags=a,b",
		"//go:generate ../bin/mcptaskgen --tags=a,b --verbose --prune":                    "out=mcptask_gen.go tags=a,b",
		"//go:generate mcptaskgen --revision $MCPTASK_TEST --out ${GOPACKAGE}_$GOFILE":    "out=p_a.go revision=2026-07-28",
		`//go:generate mcptaskgen --tools "my list.json" --service Search`:                "out=mcptask_gen.go tools=my list.json",
		"//go:generate mcptaskgen docs --out TOOLS.md":                                    "",
		"//go:generate mcptaskgen --help":                                                 "",
		"//go:generate stringer -type=mcptaskgen":                                         "",
		"//go:generate sh -c mcptaskgen":                                                  "",
		"//go:generate mcptaskgenerate":                                                   "",
		"// go:generate mcptaskgen":                                                       "",
		"//go:generate mcptaskgen --out":                                                  "error: flag needs an argument: --out",
		"//go:generate mcptaskgen --server_only":                                          "error: unknown flag: --server_only",
	} {
		line, err := commandline.ParseLine(comment, "/m/dir/a.go", "p")
		got := ""
		switch {
		case err != nil:
			got = "error: " + err.Error()
		case line != nil:
			cfg := line.Config
			words := append([]string{"out=" + cfg.Output}, line.Packages...)
			for word, ok := range map[string]bool{
				"server": cfg.ServerOnly, "client": cfg.ClientOnly, "tags=" + cfg.Tags: cfg.Tags != "",
				"revision=" + strings.Join(cfg.Revisions, ","): len(cfg.Revisions) > 0, "tools=" + line.Tools.File: line.ReadsTools(),
			} {
				if ok {
					words = append(words, word)
				}
			}
			got = strings.Join(words, " ")
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", comment, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	for patterns, want := range map[string]string{
		"":                       ".",
		".":                      ".",
		"./...":                  ". a a/b ab",
		"./a":                    "a",
		"./a/...":                "a a/b",
		"./a...":                 "a a/b ab",
		"./a/ ./ab":              "a ab",
		"..":                     "..",
		"../...":                 ".. . a a/b ab",
		"example.com/m/dir/a":    "a",
		"example.com/m/...":      ".. . a a/b ab",
		"example.com/elsewhere":  "",
		"--tools list.json":      "",
		"--client-only ./a ./ab": "a ab",
	} {
		line, err := commandline.ParseLine(strings.TrimRight("//go:generate mcptaskgen "+patterns, " ")+" --verbose", "/m/dir/a.go", "p")
		if err != nil || line == nil {
			t.Fatal(patterns, err)
		}
		var got []string
		for _, dir := range []string{"..", ".", "a", "a/b", "ab"} {
			path := filepath.Join("/m/dir", dir)
			if line.Covers(path, "example.com"+filepath.ToSlash(path)) {
				got = append(got, dir)
			}
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", patterns, d)
		}
	}
}
