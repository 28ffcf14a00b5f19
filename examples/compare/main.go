// Command compare measures how fast tasks are: on each store, in both released revisions, and beside mcp-go with the
// same tools and requests. Each figure is a ratio to a floor that was measured next to it. The floor is an echo of JSON
// through net/http, or the bare driver of a database. To write the figures into docs/performance.md, run:
//
//	make bench
//
// PostgreSQL has to be installed, or to be named with -postgres. Without it, its column is left out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/localpg"
)

// settings are the flags.
type settings struct {
	rounds   int
	while    time.Duration
	tasks    int64
	postgres string
	page     string
}

func main() {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 5, "measure in this many `rounds`, and take the median of each ratio")
	flag.DurationVar(&s.while, "time", 500*time.Millisecond, "measure each rate for this `duration` in each round")
	flag.Int64Var(&s.tasks, "tasks", 10_000, "measure the memory of this many `tasks` that have ended")
	flag.StringVar(&s.postgres, "postgres", "", "use the PostgreSQL database with this `DSN`, and leave the schemas compare1, compare2, … in it; the default is a temporary one")
	flag.StringVar(&s.page, "write", "", "write the tables into this `page`, between its marks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Stderr, s)
	stop()
	if err != nil {
		slog.New(slog.NewTextHandler(os.Stderr, nil)).Error(err.Error())
		os.Exit(1)
	}
}

// run measures, prints the tables, and writes them into the page.
func run(ctx context.Context, out, notes io.Writer, s settings) error {
	m, err := compare(ctx, notes, s)
	if err != nil {
		return err
	}
	text := m.format(s)
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	if s.page == "" {
		return nil
	}
	return writePage(s.page, text)
}

// measurements are the findings of the rounds. The keys of the ratios are a row and a column.
type measurements struct {
	load             string // of the machine, before
	toEcho, toDriver map[[2]string][]float64
	rows, columns    []string         // of toEcho
	echo             []float64        // requests in a second
	memory           map[string]int64 // bytes of the heap for each task that has ended, by column
}

// compare measures everything, and notes how far it is.
func compare(ctx context.Context, notes io.Writer, s settings) (_ *measurements, err error) {
	m := &measurements{load: readLoad(), toEcho: map[[2]string][]float64{}, toDriver: map[[2]string][]float64{}, memory: map[string]int64{}}
	m.columns = []string{inMemory, onSQLite, onPostgres, onMCPGo}
	directory, err := os.MkdirTemp("", "compare")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	dsn := s.postgres
	if dsn == "" {
		server, startErr := localpg.Start(ctx, "fsync=on")
		switch {
		case errors.Is(startErr, localpg.ErrMissing):
			fmt.Fprintln(notes, startErr)
			m.columns = slices.DeleteFunc(m.columns, func(column string) bool { return column == onPostgres })
		case startErr != nil:
			return nil, startErr
		default:
			defer func() { err = errors.Join(err, server.Close()) }()
			dsn = server.DSN()
		}
	}
	number := 0
	for round := range s.rounds + 1 {
		for _, column := range m.columns {
			number++
			t, err := start(ctx, column, dsn, directory, number)
			if err != nil {
				return nil, err
			}
			if round == 0 {
				err = m.measureMemory(ctx, t, s.tasks)
			} else {
				fmt.Fprintf(notes, "round %d of %d: %s\n", round, s.rounds, column)
				err = m.measureRates(ctx, t, s.while)
			}
			if err = errors.Join(err, t.close()); err != nil {
				return nil, fmt.Errorf("%s: %w", column, err)
			}
		}
	}
	return m, nil
}

// measureRates measures each work of a target beside its floors.
func (m *measurements) measureRates(ctx context.Context, t *target, while time.Duration) (err error) {
	echo, err := startEcho(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, echo.close()) }()
	for _, w := range t.works {
		if w.prepare != nil {
			if err := w.prepare(ctx); err != nil {
				return fmt.Errorf("%s: %w", w.row, err)
			}
		}
		works := []func(context.Context) error{echo.works[0].do, w.do}
		if w.bare != nil {
			works = append(works, w.bare)
		}
		rates, err := measure(ctx, while, works...)
		if err != nil {
			return fmt.Errorf("%s: %w", w.row, err)
		}
		if !slices.Contains(m.rows, w.row) {
			m.rows = append(m.rows, w.row)
		}
		m.echo = append(m.echo, rates[0])
		key := [2]string{w.row, t.name}
		m.toEcho[key] = append(m.toEcho[key], w.requests*rates[1]/rates[0])
		if w.bare != nil {
			m.toDriver[key] = append(m.toDriver[key], rates[1]/rates[2])
		}
	}
	return nil
}

// measureMemory measures the heap that tasks take after their end.
func (m *measurements) measureMemory(ctx context.Context, t *target, tasks int64) error {
	if err := repeat(ctx, 2*clients, t.live); err != nil { // the first tasks make data that later ones share
		return err
	}
	before := heapInUse()
	if err := repeat(ctx, tasks, t.live); err != nil {
		return err
	}
	m.memory[t.name] = max(0, heapInUse()-before) / tasks
	return nil
}

// heapInUse returns the bytes of the heap that are reachable.
func heapInUse() int64 {
	for range 3 { // pools keep their objects for two collections
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// median returns the median of numbers.
func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[len(sorted)/2]
}
