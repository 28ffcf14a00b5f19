package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
)

// describeTools prints the arguments of a tool, or the tools of the server if words is empty.
func describeTools(words []string) action {
	return func(ctx context.Context, s *session) error {
		if len(words) > 0 {
			tool, err := s.findTool(ctx, words[0])
			if err != nil {
				return err
			}
			return terminal.DescribeTool(s.stdout, tool, func(arguments ...string) string {
				return s.server.commandLine("call", append([]string{tool.Name}, arguments...)...)
			})
		}
		tools, err := s.conn.ListTools(ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, tool := range tools {
			first, _, _ := strings.Cut(strings.TrimSpace(tool.Description), "\n")
			rows = append(rows, []string{tool.Name, first})
		}
		return printTable(s.stdout, rows)
	}
}

// printTable prints rows in columns. No line ends in spaces. At a terminal, lines are cut to its width.
func printTable(w io.Writer, rows [][]string) error {
	var columns strings.Builder
	table := tabwriter.NewWriter(&columns, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		for i := range cells {
			cells[i] = terminal.Printable(cells[i], false)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush() // a strings.Builder takes everything
	for line := range strings.Lines(columns.String()) {
		if _, err := fmt.Fprintln(w, terminal.FitWindow(w, strings.TrimRight(line, " \n"))); err != nil {
			return err
		}
	}
	return nil
}
