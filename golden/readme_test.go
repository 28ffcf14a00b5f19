package golden_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const modulePath = "github.com/mcptaskgen/mcptaskgen"

// block is fenced code of the README, with the line of text before it.
type block struct {
	line                 int
	language, lead, code string
}

var leadFile = regexp.MustCompile("(In|From) `([^`]+)`:$")

// TestReadme looks the Go code of the README up in the files that it is from. TestQuickstart runs the rest.
func TestReadme(t *testing.T) {
	for _, b := range readmeBlocks(t) {
		lead := leadFile.FindStringSubmatch(b.lead)
		switch {
		case b.language == "go" && lead == nil:
			t.Errorf("README.md:%d: Go code after %q: nothing tests it; write In `file`: or From `file`: before it", b.line, b.lead)
		case lead != nil && lead[1] == "From":
			source, err := os.ReadFile(filepath.Join("..", lead[2]))
			if err != nil {
				t.Error(err)
			} else if !strings.Contains(string(source), b.code) {
				t.Errorf("README.md:%d: the code is not in %s any more", b.line, lead[2])
			}
		}
	}
}

// readmeBlocks reads the fenced code of the README.
func readmeBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	text := ""
	for i, line := range strings.Split(string(content), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{line: i + 1, language: fence, lead: text}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.code += line + "\n"
		case line != "":
			text = line
		}
	}
	if open != nil {
		t.Fatalf("README.md:%d: the block is not closed", open.line)
	}
	return blocks
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	anchor  = regexp.MustCompile(`\]\(([A-Z]+\.md)?#([^)]+)\)`)
	dropped = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// TestAnchors follows the links to sections.
func TestAnchors(t *testing.T) {
	sections := map[string]map[string]bool{}
	texts := map[string]string{}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name], sections[name] = string(text), map[string]bool{}
		for _, h := range heading.FindAllStringSubmatch(string(text), -1) {
			sections[name][strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
		}
	}
	for name, text := range texts {
		for _, link := range anchor.FindAllStringSubmatch(text, -1) {
			if to := cmp.Or(link[1], name); !sections[to][link[2]] {
				t.Errorf("%s: %s has no section #%s", name, to, link[2])
			}
		}
	}
}
