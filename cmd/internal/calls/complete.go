package calls

import (
	"context"
	"slices"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/terminal"
)

// completeWithin is how long a person waits for completions.
const completeWithin = 3 * time.Second

// CompleteTools returns the names of the server's tools. A server that cannot be asked has none. Programs are not started
// for this.
func CompleteTools(ctx context.Context, config Config) (names []string) {
	for _, tool := range config.listTools(ctx) {
		names = append(names, tool.Name)
	}
	return names
}

// CompleteArguments returns how the words behind a tool may go on: NAME= for each argument that words do not have yet, or
// NAME=VALUE if the last word, which is being typed, has the name and there are values to choose from. words is not empty.
func CompleteArguments(ctx context.Context, config Config, name string, words []string) (completions []string) {
	tools := config.listTools(ctx)
	i := slices.IndexFunc(tools, func(tool mcptask.ToolInfo) bool { return tool.Name == name })
	if i < 0 {
		return nil
	}
	given := map[string]bool{}
	for _, word := range words[:len(words)-1] {
		argument, _, _ := strings.Cut(word, "=")
		given[strings.TrimSuffix(argument, ":")] = true
	}
	typed, _, hasValue := strings.Cut(words[len(words)-1], "=")
	for _, a := range terminal.DescribeArguments(tools[i]) {
		switch {
		case hasValue && a.Name == typed:
			for _, value := range a.Values {
				completions = append(completions, a.Name+"="+value)
			}
		case !hasValue && !given[a.Name]:
			completions = append(completions, a.Name+"=")
		}
	}
	return completions
}

// CompleteTasks returns the IDs of the caller's tasks, if the server lists them.
func CompleteTasks(ctx context.Context, config Config) (ids []string) {
	_ = config.withList().complete(ctx, func(ctx context.Context, s *session) error {
		tasks, err := s.listTasks(ctx)
		for _, task := range tasks {
			ids = append(ids, task.TaskID)
		}
		return err
	})
	return ids
}

// listTools lists the server's tools, or none.
func (c Config) listTools(ctx context.Context) (tools []mcptask.ToolInfo) {
	_ = c.complete(ctx, func(ctx context.Context, s *session) (err error) {
		tools, err = s.listTools(ctx)
		return err
	})
	return tools
}

// complete does work for a person who waits for completions. There is nobody to tell errors.
func (c Config) complete(ctx context.Context, work func(context.Context, *session) error) error {
	if c.Server.URL == "" {
		return nil
	}
	c.NoInput, c.Quiet, c.Verbose = true, true, false
	c.Timeout = completeWithin
	return c.run(ctx, work)
}
