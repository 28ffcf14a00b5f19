//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSubject: both tools do their work on the package, which compiles with what they write.
func TestSubject(t *testing.T) {
	s, err := prepareSubject(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{s.ours, s.stringer} {
		p, err := s.runOnce(t.Context(), command, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		if p.wall <= 0 || p.tree < 1e6 {
			t.Errorf("%s took %v and %.0f bytes", command[0], p.wall, p.tree)
		}
	}
	if _, err := runCommand(t.Context(), s.dir, "go", "build", "."); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"mcptask_gen.go":  "type ReleasesClient struct",
		"server.go":       `"github.com/modelcontextprotocol/go-sdk/mcp"`,
		"state_string.go": "func (i State) String() string",
	} {
		if text, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q: %v", name, want, err)
		}
	}
	for _, command := range [][]string{s.ours, s.stringer} { // warm: what they write is what there is
		own, err := s.measureOwnPeak(t.Context(), command)
		if err != nil || own < 1e6 {
			t.Errorf("%s: %.0f bytes, %v", command[0], own, err)
		}
	}
}

func TestAfterLoading(t *testing.T) {
	const said = "mcptaskgen: load     120.5ms\nmcptaskgen: read     3ms\nmcptaskgen: render   2.5ms\n" +
		"mcptaskgen: wrote mcptask_gen.go\nmcptaskgen: write    500µs\n"
	if took, err := sumAfterLoading(said); err != nil || took != 6*time.Millisecond {
		t.Errorf("%v, %v", took, err)
	}
	if _, err := sumAfterLoading(strings.ReplaceAll(said, "read ", "see ")); err == nil {
		t.Error("a step that is missing is not missed")
	}
}

// TestReport: a goal that is missed is named, and fails the run.
func TestReport(t *testing.T) {
	good := func() figures {
		return figures{
			runs:     9,
			ours:     samples{wall: []float64{130e6, 120e6, 500e6}, own: []float64{30e6}, tree: []float64{60e6}},
			stringer: samples{wall: []float64{100e6, 110e6, 90e6}, own: []float64{20e6}, tree: []float64{30e6}},
			after:    []float64{19e6, 1e6, 90e6},
		}
	}
	for name, test := range map[string]struct {
		spoil  func(*figures)
		missed string
	}{
		"good":          {func(*figures) {}, ""},
		"slow":          {func(f *figures) { f.ours.wall[1] = 140e6 }, "wall time"},
		"slow later":    {func(f *figures) { f.after[1] = 21e6 }, "after loading"},
		"large":         {func(f *figures) { f.ours.own[0] = 65e6 }, "peak memory"},
		"large go list": {func(f *figures) { f.ours.tree = append(f.ours.tree, 65e6) }, "peak memory"},
	} {
		t.Run(name, func(t *testing.T) {
			f := good()
			test.spoil(&f)
			var out strings.Builder
			err := f.printReport(&out)
			switch {
			case test.missed == "" && err != nil, test.missed != "" && (err == nil || err.Error() != "missed: "+test.missed):
				t.Errorf("%v, want %q", err, test.missed)
			case !strings.Contains(out.String(), "100.0 ms"):
				t.Errorf("no median:\n%s", &out)
			}
		})
	}
}
