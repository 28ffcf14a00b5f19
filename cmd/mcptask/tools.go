package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// describeTools prints the arguments of a tool, or the tools of the server if words is empty.
func describeTools(words []string) action {
	return func(ctx context.Context, s *session) error {
		if len(words) > 0 {
			tool, err := s.findTool(ctx, words[0])
			if err != nil {
				return err
			}
			s.describeTool(tool)
			return nil
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
		printTable(s.stdout, rows)
		return nil
	}
}

// describeTool prints a tool: its description, how it is called, and its arguments.
func (s *session) describeTool(tool mcptask.ToolInfo) {
	w := s.stdout
	if tool.Description != "" {
		fmt.Fprintf(w, "%s\n\n", terminal.Printable(strings.TrimSpace(tool.Description), true))
	}
	arguments := terminal.DescribeArguments(tool)
	words := []string{tool.Name}
	for _, a := range arguments {
		if a.Required {
			words = append(words, a.Name+"="+strings.ToUpper(a.Name))
		}
	}
	fmt.Fprintf(w, "  %s\n\n", terminal.Printable(s.server.commandLine("call", words...), false))
	var rows [][]string
	for _, a := range arguments {
		kind := a.Kind
		if a.Required {
			kind += ", required"
		}
		if a.Default != nil {
			text, _ := json.Marshal(a.Default)
			kind += ", " + string(text) + " by default"
		}
		rows = append(rows, []string{a.Name, kind, a.Description})
	}
	printTable(w, rows)
	switch tool.TaskSupport {
	case mcptask.TaskRequired:
		fmt.Fprintln(w, "\nIt always runs as a task.")
	case mcptask.TaskOptional:
		fmt.Fprintln(w, "\nIt may run as a task.")
	}
}

// printTable prints rows in columns. No line ends in spaces.
func printTable(w io.Writer, rows [][]string) {
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
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}
