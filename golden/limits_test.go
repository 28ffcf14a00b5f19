package golden_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestReadmeLimits holds what the README tells an operator of the limits: those
// that there are, with the defaults that a server has.
func TestReadmeLimits(t *testing.T) {
	rules.Covers(t, "C-90", "C-99", "C-100", "B-86", "B-94", "B-95", "A-69", "A-74")
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Limits and security\n")
	section, _, ok := strings.Cut(section, "\n## ")
	if !ok {
		t.Fatal("the section is missing")
	}
	s, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := []string{fmt.Sprintf("| %d MiB | `Options.MaxBody`", s.Options().MaxBody>>20)}
	limits := reflect.ValueOf(s.Options().Limits)
	for i := range limits.NumField() {
		name := limits.Type().Field(i).Name
		if totals := limits.Field(i); totals.Kind() == reflect.Struct {
			for j := range totals.NumField() {
				want = append(want, fmt.Sprintf("| `%s.%s` | %d |", name, totals.Type().Field(j).Name, totals.Field(j).Int()))
			}
			continue
		}
		want = append(want, fmt.Sprintf("| `%s` | %d | `%s` |", name, limits.Field(i).Int(), strings.ToLower(name)))
	}
	for _, text := range want {
		if !strings.Contains(section, text) {
			t.Errorf("the README does not say %q", text)
		}
	}
	row := regexp.MustCompile(`(?m)^\| the longest ttl [^|]*\| (\d+) days\b[^|]*\| [^|]*Options\.MaxTTL`).FindStringSubmatch(section)
	if days := fmt.Sprint(int(mcptask.DefaultMaxTTL / (24 * time.Hour))); row == nil || row[1] != days {
		t.Errorf("no row for the longest ttl, which is %s days: %q", days, row)
	}
	if !regexp.MustCompile(`(?s)Without authentication the ID is the key.*who knows a task's ID may\s+read, answer and cancel`).MatchString(section) {
		t.Error("nothing says that tasks of callers without authentication are bound to nobody")
	}
}
