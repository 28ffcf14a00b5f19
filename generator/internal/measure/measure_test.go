//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
)

func TestAfterLoading(t *testing.T) {
	const said = "mcptaskgen: load     120.5ms\nmcptaskgen: generate 5.5ms\n" +
		"mcptaskgen: wrote mcptask_gen.go\nmcptaskgen: write    500µs\n"
	if took, err := sumAfterLoading(said); err != nil || took != 6*time.Millisecond {
		t.Errorf("%v, %v", took, err)
	}
	if _, err := sumAfterLoading(strings.ReplaceAll(said, "generate", "see")); err == nil {
		t.Error("a missing step is not an error")
	}
}

// TestReport checks that a missed goal is named and fails the run.
func TestReport(t *testing.T) {
	good := func() figures {
		return figures{
			runs:     9,
			ours:     samples{wall: []float64{130e6, 120e6, 500e6}, peak: []float64{60e6}},
			stringer: samples{wall: []float64{100e6, 110e6, 90e6}, peak: []float64{30e6}},
			after:    []float64{19e6, 1e6, 90e6},
			large:    samples{wall: []float64{740e6, 900e6, 1e6}, peak: []float64{60e6}},
		}
	}
	for name, test := range map[string]struct {
		spoil  func(*figures)
		missed string
	}{
		"good":       {func(*figures) {}, ""},
		"slow":       {func(f *figures) { f.ours.wall[1] = 140e6 }, "wall time"},
		"slow later": {func(f *figures) { f.after[1] = 21e6 }, "after loading"},
		"many tools": {func(f *figures) { f.large.wall[0] = 760e6 }, "many tools"},
		"large":      {func(f *figures) { f.ours.peak = append(f.ours.peak, 65e6) }, "peak memory"},
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
