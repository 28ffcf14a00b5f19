// Command everything calls a server that somebody else has written, with a client that was generated
// from its list of tools. Run npm ci in this folder first; then
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
	dir := flag.String("dir", "examples/everything", "the folder where npm ci has put the server")
	node := flag.String("node", "node", "the Node.js that runs it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *node, *dir)
	stop()
	if err != nil {
		slog.New(slog.NewTextHandler(os.Stderr, nil)).Error(err.Error())
		os.Exit(1)
	}
}

// clarification is what the server asks where a topic may mean several things: its question has no
// name, so the schema tells it.
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

// choice is an answer to it.
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
	defer conn.Close() // it has to be killed: it goes on where its input ends
	client := everything.NewEverythingClient(conn)
	if err := plain(ctx, out, client); err != nil {
		return err
	}
	return research(ctx, out, client)
}

// plain calls tools that answer at once: one with an output schema, one with text.
func plain(ctx context.Context, out io.Writer, server everything.Everything) error {
	weather, err := server.GetStructuredContent(ctx, everything.GetStructuredContentInput{
		Location: everything.GetStructuredContentInputLocationNewYork,
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

// research runs the server's task: it follows the task, answers what it asks, and takes it up again
// by its token.
func research(ctx context.Context, out io.Writer, client *everything.EverythingClient) error {
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
