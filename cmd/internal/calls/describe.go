package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/terminal"
)

// Describe prints what a tool takes, or what tools the server has if name is "". The error is a *Failure.
func Describe(ctx context.Context, config Config, name string) error {
	return config.run(ctx, func(ctx context.Context, s *session) error {
		if name != "" {
			tool, err := s.findTool(ctx, name)
			if err != nil {
				return err
			}
			s.terminal.Close()
			return s.describeTool(tool)
		}
		tools, err := s.listTools(ctx)
		if err != nil {
			return err
		}
		s.terminal.Close()
		var rows [][]string
		for _, tool := range tools {
			first, _, _ := strings.Cut(strings.TrimSpace(tool.Description), "\n")
			rows = append(rows, []string{tool.Name, first})
		}
		printTable(s.Stdout, rows)
		return nil
	})
}

// describeTool prints a tool: its description, how it is called, and its arguments.
func (s *session) describeTool(tool mcptask.ToolInfo) error {
	w := s.Stdout
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
	fmt.Fprintf(w, "  mcptaskgen call %s\n\n", terminal.Printable(s.Server.with(words...), false))
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
	return nil
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
