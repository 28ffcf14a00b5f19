package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The marks in the page.
const (
	beginMark = "<!-- What follows is measured: make bench -->\n"
	endMark   = "<!-- Here ends what is measured. -->\n"
)

// format writes the tables in Markdown.
func (m *measurements) format(s settings) string {
	var text strings.Builder
	version := runtime.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == "github.com/mark3labs/mcp-go" {
				version += ", mcp-go " + dependency.Version
			}
		}
	}
	fmt.Fprintf(&text, "Measured on %s, on a machine with %d processors (%s), %s/%s, %s. Each figure is the median of %d rounds of %v. The echo answered %.0f requests a second. The machine's load before was %s.\n\n",
		time.Now().Format("2 January 2006"), runtime.NumCPU(), processor(), runtime.GOOS, runtime.GOARCH, version, s.rounds, s.while, median(m.echo), m.load)
	fmt.Fprint(&text, "Requests for each request of the echo:\n\n")
	writeTable(&text, m.rows, m.columns, func(row, column string) string { return formatRatio(m.toEcho[[2]string{row, column}]) })
	var rows []string
	for _, row := range m.rows {
		if slices.ContainsFunc(m.columns, func(column string) bool { return len(m.toDriver[[2]string{row, column}]) > 0 }) {
			rows = append(rows, row)
		}
	}
	databases := slices.DeleteFunc(slices.Clone(m.columns), func(column string) bool { return len(m.toDriver[[2]string{rows[0], column}]) == 0 })
	fmt.Fprint(&text, "\nLives and reports for each one that the bare driver stores:\n\n")
	writeTable(&text, rows, databases, func(row, column string) string { return formatRatio(m.toDriver[[2]string{row, column}]) })
	fmt.Fprintf(&text, "\nMemory of the process for each of %d tasks that have ended:\n\n", s.tasks)
	writeTable(&text, []string{"bytes of the heap"}, m.columns, func(_, column string) string { return strconv.FormatInt(m.memory[column], 10) })
	return text.String()
}

func writeTable(text *strings.Builder, rows, columns []string, cell func(row, column string) string) {
	fmt.Fprintf(text, "| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(text, "| %s |", row)
		for _, column := range columns {
			if c := cell(row, column); c == "" {
				fmt.Fprint(text, " |")
			} else {
				fmt.Fprintf(text, " %s |", c)
			}
		}
		fmt.Fprintln(text)
	}
}

// formatRatio writes the median of ratios with two digits, or nothing if there is none.
func formatRatio(ratios []float64) string {
	if len(ratios) == 0 {
		return ""
	}
	return strconv.FormatFloat(median(ratios), 'g', 2, 64)
}

// processor returns the model of the processor, as far as the system tells it in a file.
func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// readLoad returns how many processes the machine had ready to run in the last minute, as far as the system tells it in a
// file.
func readLoad() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(data), " ")
	return load
}

// writePage replaces the text between the marks of a page.
func writePage(name, text string) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("-write: %w", err)
	}
	before, rest, hasBegin := strings.Cut(string(page), beginMark)
	_, after, hasEnd := strings.Cut(rest, endMark)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("-write: %s has no lines %q and %q", name, strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return os.WriteFile(name, []byte(before+beginMark+"\n"+text+"\n"+endMark+after), 0o644)
}
