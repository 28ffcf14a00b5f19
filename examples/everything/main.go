// Command everything calls the tools of another project's server. Its client was generated from the
// server's list of tools. Run npm ci in this directory first, then:
//
//	go run ./examples/everything
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/examples/everything/everything"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

func main() {
	dir := flag.String("dir", "examples/everything", "the directory in which npm ci installed the server")
	node := flag.String("node", "node", "the Node.js program that runs the server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *node, *dir)
	stop()
	if err != nil {
		slog.New(slog.NewTextHandler(os.Stderr, nil)).Error(err.Error())
		os.Exit(1)
	}
}

// clarification is the schema of the server's question about an ambiguous topic. The question has
// no name, so the schema identifies it.
const clarification = `{
  "type": "object",
  "properties": {
    "interpretation": {
      "type": "string",
      "title": "Clarification",
      "description": "Which interpretation of the topic do you mean?",
      "oneOf": [
        {"const": "programming", "title": "Python programming language"},
        {"const": "snake", "title": "Python snake species"},
        {"const": "comedy", "title": "Monty Python comedy group"}
      ]
    }
  },
  "required": ["interpretation"]
}`

// choice is an answer to clarification.
type choice struct {
	Interpretation string `json:"interpretation"`
}

// run starts the server as a subprocess and calls its tools.
func run(ctx context.Context, out io.Writer, node, dir string) error {
	script := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	conn, err := gosdk.ConnectCommand(ctx, exec.CommandContext(ctx, node, script, "stdio"), gosdk.ClientOptions{
		Answer: mcptask.Answer(mcptask.InputSpec{Schema: clarification}, func(_ context.Context, q mcptask.Question) (choice, error) {
			fmt.Fprintf(out, "question: %s\n", q.Message)
			return choice{"snake"}, nil
		}),
	})
	if err != nil {
		return err
	}
	defer conn.Close() // kills the server, which continues after the end of its input
	client := everything.NewEverythingClient(conn)
	if err := callPlainTools(ctx, out, client); err != nil {
		return err
	}
	return runResearchTask(ctx, out, client)
}

// callPlainTools calls tools that return at once: one with an output schema, one with text.
func callPlainTools(ctx context.Context, out io.Writer, server everything.Everything) error {
	weather, err := server.GetStructuredContent(ctx, everything.GetStructuredContentInput{
		Location: everything.LocationNewYork,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "weather: %s, humidity %v\n", weather.Conditions, weather.Humidity)
	sum, err := server.GetSum(ctx, everything.GetSumInput{A: 40, B: 2})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "sum: %s\n", sum.Text())
	return nil
}

// runResearchTask runs a task on the server. It follows the task, answers its question, and resumes
// it by its token.
func runResearchTask(ctx context.Context, out io.Writer, client *everything.EverythingClient) error {
	call, err := client.StartSimulateResearchQuery(ctx, everything.SimulateResearchQueryInput{Topic: "python", Ambiguous: true})
	if err != nil {
		return err
	}
	token, ok := call.Token()
	if !ok {
		return errors.New("simulate-research-query did not become a task")
	}
	for snapshot, err := range call.Updates(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s\n", snapshot.Status, snapshot.Message)
	}
	again, err := client.ResumeSimulateResearchQuery(token)
	if err != nil {
		return err
	}
	report, err := again.Wait(ctx)
	if err != nil {
		return err
	}
	title, _, _ := strings.Cut(report.Text(), "\n")
	fmt.Fprintf(out, "result: %s\n", title)
	return nil
}
