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

// figures are those of all runs: nanoseconds and bytes.
type figures struct {
	runs           int
	ours, stringer samples
	after          []float64 // nanoseconds that mcptaskgen took after loading
}

// samples are what the runs of one tool took.
type samples struct{ wall, own, tree []float64 }

// measure runs both tools in turn, after each has run twice to fill the caches.
func (s subject) measure(ctx context.Context, runs int) (figures, error) {
	f := figures{runs: runs}
	nobody := func(int) {}
	for i := range runs + 2 {
		ours, err := s.once(ctx, s.ours, nobody)
		if err != nil {
			return f, err
		}
		stringer, err := s.once(ctx, s.stringer, nobody)
		if err != nil {
			return f, err
		}
		after, err := afterLoading(ours.stderr)
		if err != nil {
			return f, err
		}
		if i < 2 {
			continue
		}
		f.ours.add(ours)
		f.stringer.add(stringer)
		f.after = append(f.after, float64(after))
	}
	for range runs {
		ours, err := s.ownPeak(ctx, s.ours)
		if err != nil {
			return f, err
		}
		stringer, err := s.ownPeak(ctx, s.stringer)
		if err != nil {
			return f, err
		}
		f.ours.own = append(f.ours.own, ours)
		f.stringer.own = append(f.stringer.own, stringer)
	}
	return f, nil
}

func (s *samples) add(p process) {
	s.wall = append(s.wall, float64(p.wall))
	s.tree = append(s.tree, p.tree)
}

// report prints the figures, and returns an error that says which goals are missed.
func (f figures) report(out io.Writer) error {
	wall, theirs := median(f.ours.wall), median(f.stringer.wall)
	own, tree, after := slices.Max(f.ours.own), slices.Max(f.ours.tree), median(f.after)
	fmt.Fprintf(out, "%d warm runs of each in turn, %d processors, %s\n\n", f.runs, runtime.NumCPU(), load())
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\tmcptaskgen\tstringer\tratio\tgoal\t\n")
	fmt.Fprintf(table, "wall time, median\t%s\t%s\t%.2f\t%.2f\t\n", ms(wall), ms(theirs), wall/theirs, maxRatio)
	fmt.Fprintf(table, "after loading, median\t%s\t\t\t%s\t\n", ms(after), ms(maxAfter))
	fmt.Fprintf(table, "peak memory, most of all runs\t%s\t%s\t\t%s\t\n", mb(own), mb(slices.Max(f.stringer.own)), mb(maxPeak))
	fmt.Fprintf(table, "the same, or of its go command\t%s\t%s\t\t%s\t\n", mb(tree), mb(slices.Max(f.stringer.tree)), mb(maxPeak))
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
		{"peak memory", max(own, tree) <= maxPeak},
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

// load says how busy the machine is, so that a figure can be judged.
func load() string {
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

func ms(nanoseconds float64) string {
	return fmt.Sprintf("%.1f ms", nanoseconds/float64(time.Millisecond))
}

func mb(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/1e6) }
