//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figures holds the measurements of all runs, in nanoseconds and bytes.
type figures struct {
	runs           int
	ours, stringer samples
	large          samples
	largeLines     int       // of the file generated for the large package
	after          []float64 // the time of mcptaskgen after loading, in nanoseconds
}

// samples holds the measurements of one tool.
type samples struct{ wall, peak []float64 }

// measureTools runs both tools in turn, and mcptaskgen on the large package. It first runs each twice
// to fill the caches.
func (s subject) measureTools(ctx context.Context, runs int) (figures, error) {
	f := figures{runs: runs}
	for i := range runs + 2 {
		ours, err := s.runOnce(ctx, s.ours)
		if err != nil {
			return f, err
		}
		stringer, err := s.runOnce(ctx, s.stringer)
		if err != nil {
			return f, err
		}
		large, err := s.runOnce(ctx, s.large)
		if err != nil {
			return f, err
		}
		after, err := sumAfterLoading(ours.stderr)
		if err != nil {
			return f, err
		}
		if i < 2 {
			continue
		}
		f.ours.addRun(ours)
		f.stringer.addRun(stringer)
		f.large.addRun(large)
		f.after = append(f.after, float64(after))
	}
	var err error
	f.largeLines, err = countLines(s.dir)
	return f, err
}

func (s *samples) addRun(p process) {
	s.wall = append(s.wall, float64(p.wall))
	s.peak = append(s.peak, p.peak)
}

// printReport prints the figures. Its error names the missed goals.
func (f figures) printReport(out io.Writer) error {
	wall, theirs := median(f.ours.wall), median(f.stringer.wall)
	peak, after, large := slices.Max(f.ours.peak), median(f.after), median(f.large.wall)
	fmt.Fprintf(out, "%d warm runs of each in turn, %d processors, %s\n\n", f.runs, runtime.NumCPU(), systemLoad())
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\tmcptaskgen\tstringer\tratio\tgoal\t\n")
	fmt.Fprintf(table, "wall time, median\t%s\t%s\t%.2f\t%.2f\t\n", formatMilliseconds(wall), formatMilliseconds(theirs), wall/theirs, maxRatio)
	fmt.Fprintf(table, "after loading, median\t%s\t\t\t%s\t\n", formatMilliseconds(after), formatMilliseconds(maxAfter))
	fmt.Fprintf(table, "peak memory, most of all runs\t%s\t%s\t\t%s\t\n", formatMegabytes(peak), formatMegabytes(slices.Max(f.stringer.peak)), formatMegabytes(maxPeak))
	fmt.Fprintf(table, "%d tools over %d types, median\t%s\t\t\t%s\t\n", largeTools, largeTypes, formatMilliseconds(large), formatMilliseconds(maxLarge))
	fmt.Fprintf(table, "lines generated for them\t%d\t\t\t\t\n", f.largeLines)
	if err := table.Flush(); err != nil {
		return err
	}
	var missed []string
	for _, goal := range []struct {
		name string
		ok   bool
	}{
		{"wall time", wall/theirs <= maxRatio},
		{"after loading", after <= maxAfter},
		{"peak memory", peak <= maxPeak},
		{"many tools", large <= maxLarge},
	} {
		if !goal.ok {
			missed = append(missed, goal.name)
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(missed, ", "))
	}
	fmt.Fprint(out, "\nall goals are met\n")
	return nil
}

// systemLoad returns the load of the machine, to help judge the figures.
func systemLoad() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load unknown"
	}
	last, _, _ := strings.Cut(string(text), " ")
	return "load " + last
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func formatMilliseconds(nanoseconds float64) string {
	return fmt.Sprintf("%.1f ms", nanoseconds/float64(time.Millisecond))
}

func formatMegabytes(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/1e6) }
