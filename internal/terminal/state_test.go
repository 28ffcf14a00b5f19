package terminal

import (
	"math"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// snapshot makes a snapshot that began a while before noon.
func snapshot(status mcptask.Status, began time.Duration, done, total float64, message string) mcptask.Snapshot {
	return mcptask.Snapshot{
		Status: status, CreatedAt: noon.Add(-began), Message: message, Progress: mcptask.ProgressReport{Done: done, Total: total},
	}
}

func TestLine(t *testing.T) {
	long := strings.Repeat("a long message ", 10)
	for _, c := range []struct {
		name  string
		s     mcptask.Snapshot
		width int
		want  string
	}{
		{"just begun", snapshot("working", 0, 0, 0, ""), 79, "⠋ render  0s"},
		{"a message", snapshot("working", 12*time.Second, 0, 0, "frame 3"), 79, "⠋ render  frame 3  12s"},
		{"numbers", snapshot("working", time.Minute, 3, 4, "frame 3"), 79, "⠋ render ━━━━━━━━━━━━━━━━━━────── 3/4  frame 3  1m0s"},
		{"a share", snapshot("working", 2*time.Hour, 1.5, 4.5, ""), 79, "⠋ render ━━━━━━━━──────────────── 1.5/4.5  2h0m0s"},
		{"without a total", snapshot("working", 80*time.Hour, 15, 0, ""), 79, "⠋ render 15  80h0m0s"},
		{"a long message", snapshot("working", 0, 3, 4, long), 79, "⠋ render ━━━━━━━━━━━━━━━━━━────── 3/4  a long message a long message a lon…  0s"},
		{"a smaller window", snapshot("working", 0, 3, 4, long), 59, "⠋ render ━━━━━━━━━─── 3/4  a long message a long messa…  0s"},
		{"no room for a bar", snapshot("working", 0, 3, 4, long), 39, "⠋ render 3/4  a long message a lon…  0s"},
		{"a narrow window", snapshot("working", 0, 3, 4, long), 19, "⠋ render 3/4  0s"},
		{"a tiny window", snapshot("working", 0, 3, 4, long), 9, "⠋ render"},
		{"a column", snapshot("working", 0, 3, 4, long), 1, "⠋"},
		{"a question", snapshot("input_required", 0, 3, 4, "Ship?"), 79, "? render ━━━━━━━━━━━━━━━━━━────── 3/4  Ship?  0s"},
		{"beyond the total", snapshot("working", 0, 7, 4, ""), 79, "⠋ render ━━━━━━━━━━━━━━━━━━━━━━━━ 7/4  0s"},
		{"below nothing", snapshot("working", 0, -7, 4, ""), 79, "⠋ render ──────────────────────── -7/4  0s"},
		{"no number", snapshot("working", 0, math.NaN(), math.Inf(1), ""), 79, "⠋ render  0s"},
		{"an infinite number", snapshot("working", 0, math.Inf(1), 7, ""), 79, "⠋ render  0s"},
		{"a clock that is ahead", snapshot("working", -time.Hour, 0, 0, ""), 79, "⠋ render  0s"},
		{"sequences", snapshot("working", 0, 0, 0, "a\x1b[2J\nb"), 79, "⠋ render  a b  0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := newState("render", c.s, noon).draw(c.width, noon, style{})
			if got != c.want || columns(got) > c.width {
				t.Errorf("\ngot  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestLineFits draws lines of all widths.
func TestLineFits(t *testing.T) {
	for _, message := range []string{"", "short", strings.Repeat("大小 ", 40)} {
		for _, name := range []string{"", "render", strings.Repeat("大", 50)} {
			shown := newState(name, snapshot("working", time.Hour, 3, 4, message), noon)
			for width := 1; width < 200; width++ {
				if line := shown.draw(width, noon, style{}); columns(line) > width {
					t.Fatalf("%q has more than %d columns", line, width)
				}
			}
		}
	}
}

func TestDescribe(t *testing.T) {
	failed := snapshot("failed", 0, 0, 0, "failed")
	failed.Error = &mcptask.Error{Message: "no disk"}
	asks := snapshot("input_required", 0, 0, 0, "waits")
	asks.Questions = []mcptask.Question{{Message: "Ship?"}, {Message: "Sure?"}}
	for want, s := range map[string]mcptask.Snapshot{
		"a: working":                  snapshot("working", 0, 0, 0, ""),
		"a: 1/2 half":                 snapshot("working", 0, 1, 2, "half"),
		"a: restored":                 snapshot("working", 0, 2.58064e8, 0, "restored"),
		"a: 258064384":                snapshot("working", 0, 258064384, 0, ""),
		"a: 2.00333":                  snapshot("working", 0, 2.003330957, 0, ""),
		"a: 12345678/98765432 bytes":  snapshot("working", 0, 12345678, 98765432, "bytes"),
		"a: asks":                     snapshot("input_required", 0, 0, 0, ""),
		"a: asks 2 questions: Ship?":  asks,
		"a: done":                     snapshot("completed", 0, 1, 2, "half"),
		"a: failed: no disk":          failed,
		"a: cancelled":                snapshot("cancelled", 0, 0, 0, ""),
		"a: sleeping: until tomorrow": snapshot("sleep\x07ing", 0, 0, 0, "until\ttomorrow"),
	} {
		if got := newState("a", s, noon).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
