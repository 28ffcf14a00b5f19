package golden_test

import (
	"fmt"
	"go/constant"
	"go/types"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestDocsLimits compares the limits and defaults in the operator's pages with those of a server.
func TestDocsLimits(t *testing.T) {
	rules.Covers(t, "C-90", "C-99", "C-100", "B-86", "B-94", "B-95", "A-69", "A-74")
	text := readFile(t, "../docs/reference/limits.md")
	s, err := taskserver.New(taskserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wants := []string{fmt.Sprintf("| %d MiB | `Options.MaxBody`", s.Backend().Options().MaxBody>>20)}
	limits := reflect.ValueOf(s.Backend().Options().Limits)
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
	page := readConstants(t, "../runtime/console")
	bound := func(name string) int64 {
		c, ok := page.Lookup(name).(*types.Const)
		if !ok {
			t.Fatalf("package console has no constant %s", name)
		}
		n, _ := constant.Int64Val(constant.ToInt(c.Val()))
		return n
	}
	wants = append(wants,
		fmt.Sprintf("| %d in all, %d of one viewer |", bound("maxStreams"), bound("maxStreamsPerViewer")),
		fmt.Sprintf("may take to read a change | %.0f seconds |", time.Duration(bound("sendWithin")).Seconds()),
		fmt.Sprintf("at once. Others wait, at most %.0f seconds. | %d |", time.Duration(bound("waitsWithin")).Seconds(), bound("maxReads")),
		fmt.Sprintf("until it says `not live` | %.0f seconds |", time.Duration(bound("failsFor")).Seconds()),
		fmt.Sprintf("and another page fails. | %.0f seconds |", time.Duration(bound("readsWithin")).Seconds()),
		fmt.Sprintf("| tasks on a page of the list | %d |", bound("pageSize")),
		fmt.Sprintf("of the %d oldest tasks that ask | %d |", bound("scanAsking"), bound("mostOpen")),
		fmt.Sprintf("| bytes of a revealed text that are shown | %d KiB |", bound("mostShown")>>10),
		fmt.Sprintf("| bytes of a form, such as an answer | %d MiB |", bound("answerLength")>>20),
		fmt.Sprintf("| bytes of a message in a list or in the overview | %d |", bound("mostMessage")),
		fmt.Sprintf("the oldest reports and steps are left out. | %d |", taskstore.MaxMoments))
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("docs/reference/limits.md does not say %q", want)
		}
	}
	row := regexp.MustCompile(`(?m)^\| the longest ttl [^|]*\| (\d+) days\b[^|]*\| [^|]*Options\.MaxTTL`).FindStringSubmatch(text)
	if days := fmt.Sprint(int(taskserver.DefaultMaxTTL / (24 * time.Hour))); row == nil || row[1] != days {
		t.Errorf("no row for the longest ttl, which is %s days: %q", days, row)
	}
	anonymous := regexp.MustCompile(`anyone\s+who\s+knows\s+a\s+task's\s+ID\s+can\s+read,\s+answer\s+and\s+cancel`)
	for _, name := range []string{"README.md", "docs/security.md"} {
		if !anonymous.MatchString(readFile(t, "../"+name)) {
			t.Errorf("%s does not say that the ID is the only key to the tasks of callers without authentication", name)
		}
	}
}
