package mcptasktest_test

import (
	"bytes"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestDefaultLogger checks that a server without a Logger logs warnings, but no advice to use a durable store: neither
// when it is made, with a tool that says onlost=restart, nor when it closes with a task that has not ended.
func TestDefaultLogger(t *testing.T) {
	var logged bytes.Buffer
	logger, writer, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer func() {
		slog.SetDefault(logger)
		log.SetOutput(writer)
		log.SetFlags(flags)
	}()
	bubble.Test(t, func(t *testing.T) {
		options := mcptasktest.Options{Server: taskserver.Options{Limits: taskserver.Limits{Tasks: 1}}}
		conn := mcptasktest.Connect(t, mcptask.Revision20260728, options, pipeline.CITools(ci{}))
		client := pipeline.NewCIClient(conn)
		in := pipeline.RunInput{Repository: "https://example.com/shop", Steps: []string{"test"}}
		if _, err := client.StartRunPipeline(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if _, err := client.StartRunPipeline(t.Context(), in); err == nil {
			t.Fatal("the limit was not kept")
		}
	})
	for record := range strings.Lines(logged.String()) {
		if !strings.Contains(record, `level=WARN msg="limit exceeded"`) {
			t.Errorf("logged: %s", record)
		}
	}
	if logged.Len() == 0 {
		t.Error("the limit's warning was not logged")
	}
}
