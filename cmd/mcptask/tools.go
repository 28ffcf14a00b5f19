package main

import (
	"context"
	"strings"

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
		return terminal.PrintTable(s.stdout, rows)
	}
}
