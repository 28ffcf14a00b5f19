package calls

import (
	"context"
	"encoding/json"
	"fmt"
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
		tools, err := s.conn.ListTools(ctx)
		if err != nil {
			return err
		}
		s.terminal.Close()
		w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
		for _, tool := range tools {
			first, _, _ := strings.Cut(strings.TrimSpace(tool.Description), "\n")
			fmt.Fprintf(w, "%s\t%s\n", terminal.Printable(tool.Name, false), terminal.Printable(first, false))
		}
		return w.Flush()
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
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, a := range arguments {
		kind := a.Kind
		if a.Required {
			kind += ", required"
		}
		if a.Default != nil {
			text, _ := json.Marshal(a.Default)
			kind += ", " + string(text) + " by default"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", terminal.Printable(a.Name, false), terminal.Printable(kind, false), terminal.Printable(a.Description, false))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch tool.TaskSupport {
	case mcptask.TaskRequired:
		fmt.Fprintln(w, "\nIt always runs as a task.")
	case mcptask.TaskOptional:
		fmt.Fprintln(w, "\nIt may run as a task.")
	}
	return nil
}
