package golden_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestDocsLimits compares what the pages tell an operator about limits with the limits and defaults of a server.
func TestDocsLimits(t *testing.T) {
	rules.Covers(t, "C-90", "C-99", "C-100", "B-86", "B-94", "B-95", "A-69", "A-74")
	text := readFile(t, "../docs/reference/limits.md")
	s, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wants := []string{fmt.Sprintf("| %d MiB | `Options.MaxBody`", s.Options().MaxBody>>20)}
	limits := reflect.ValueOf(s.Options().Limits)
	for i := range limits.NumField() {
		name := limits.Type().Field(i).Name
		if totals := limits.Field(i); totals.Kind() == reflect.Struct {
			for j := range totals.NumField() {
				wants = append(wants, fmt.Sprintf("| `%s.%s` | %d |", name, totals.Type().Field(j).Name, totals.Field(j).Int()))
			}
			continue
		}
		wants = append(wants, fmt.Sprintf("| `%s` | %d | `%s` |", name, limits.Field(i).Int(), strings.ToLower(name)))
	}
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("docs/reference/limits.md does not say %q", want)
		}
	}
	row := regexp.MustCompile(`(?m)^\| the longest ttl [^|]*\| (\d+) days\b[^|]*\| [^|]*Options\.MaxTTL`).FindStringSubmatch(text)
	if days := fmt.Sprint(int(mcptask.DefaultMaxTTL / (24 * time.Hour))); row == nil || row[1] != days {
		t.Errorf("no row for the longest ttl, which is %s days: %q", days, row)
	}
	anonymous := regexp.MustCompile(`anyone\s+who\s+knows\s+a\s+task's\s+ID\s+can\s+read,\s+answer\s+and\s+cancel`)
	for _, name := range []string{"README.md", "docs/security.md"} {
		if !anonymous.MatchString(readFile(t, "../"+name)) {
			t.Errorf("%s does not say that the ID is the only key to the tasks of callers without authentication", name)
		}
	}
}
