package random

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// shared are patterns of both dialects, and refused are those that only Go has, or that mean something else in
// JavaScript with the flag u, which Ajv sets.
var (
	shared = []string{
		`^[a-z]+$`, `^(?:a|b)*?$`, `a{2}b{2,}`, `\d\D\w\W\s\S`, `^\.\$\^\\\/$`, `[\w\-.]`, `[^\]\-]`, `^\p{L}+$`, `^\P{Lu}$`, `\p{Nd}`,
		`\t\n\r\f\v`, `\x41`, `(a)(b)`, `(?:)`, `^$`, `\bword\B`, `[à-ü]`, `.+@.+\..+`, `^v\d+(\.\d+)*$`, `(?<year>\d{4})`,
	}
	refused = []string{
		`(?i)^abc$`, `(?P<x>y)`, `\Aabc\z`, `[[:alpha:]]`, `\pL`, `(?s)a.b`, `(?m)^a$`, `(?U)a+`, `a(?i:b)`, `\Qa.b\E`, `\x{1F600}`, `\a`,
		`[^[:digit:]]`, `\PN`, `\p{Greek}`, `a\-b`, `\_`, `a{`, `}`, `]`, `\101`,
	}
	subjects = []string{"", "a", "abc", "ABC", "aabb", "a.b", "2026", "v1.2", "ann@example.com", "word", "-", "\\", "/", "x y", "\n", "A", "αβ", "Ü", "a-b", "$"}
)

// TestPatterns checks that a pattern that the generator takes compiles in JavaScript, and matches the same there.
func TestPatterns(t *testing.T) {
	all := append(append([]string{}, shared...), refused...)
	var source strings.Builder
	source.WriteString("package main\n\nimport \"context\"\n\n//mcptask:service\ntype S interface{ Run(ctx context.Context, in In) error }\n\ntype In struct {\n")
	first := strings.Count(source.String(), "\n") + 1
	for i, pattern := range all {
		tag := fmt.Sprintf("json:%q jsonschema:%s", fmt.Sprint("p", i), strconv.Quote("pattern="+strings.ReplaceAll(pattern, ",", `\,`)))
		fmt.Fprintf(&source, "\tP%d string `%s`\n", i, tag)
	}
	source.WriteString("}\n")
	message := fmt.Sprint(generate(t, writeModule(t, source.String())))
	problems := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^types\.go:(\d+):\d+: (.*)$`).FindAllStringSubmatch(message, -1) {
		line, _ := strconv.Atoi(m[1])
		if line < first || line >= first+len(all) {
			t.Fatal(message)
		}
		problems[all[line-first]] = m[2]
	}
	for _, pattern := range shared {
		if problem := problems[pattern]; problem != "" {
			t.Errorf("%s is refused: %s", pattern, problem)
		}
	}
	for _, pattern := range refused {
		if problems[pattern] == "" {
			t.Errorf("%s is taken", pattern)
		}
	}
	node := startNode(t)
	for _, pattern := range all {
		if problems[pattern] != "" {
			continue
		}
		var reply struct {
			Error   string
			Matches []bool
		}
		node.exchange(t, map[string]any{"pattern": pattern, "subjects": subjects}, &reply)
		if reply.Error != "" {
			t.Errorf("%s: %s", pattern, reply.Error)
			continue
		}
		for i, subject := range subjects {
			if matches := regexp.MustCompile(pattern).MatchString(subject); matches != reply.Matches[i] {
				t.Errorf("%s matches %q here: %v, and there: %v", pattern, subject, matches, reply.Matches[i])
			}
		}
	}
}
