package oteltask_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/oteltask"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// A server's spans, metrics and log records go to the providers of the program.
func ExampleHooks() {
	ctx := context.Background()
	spans, metrics := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader() // exporters in a real program
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(metrics))

	hooks := oteltask.Hooks(oteltask.WithTracerProvider(tracers), oteltask.WithMeterProvider(meters))
	tasks, err := taskserver.New(taskserver.Options{
		Hooks:  []taskserver.Hooks{hooks},
		Logger: slog.New(oteltask.LogHandler(slog.NewTextHandler(os.Stderr, nil))),
	}, greetTools())
	if err != nil {
		log.Fatal(err)
	}
	reply, err := tasks.Backend().Call(ctx, taskserver.Caller{Principal: "alice", Revision: mcptask.Revision20260728}, "greet", nil, taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("created", reply.Task.Tool)
	if err := tasks.Close(); err != nil {
		log.Fatal(err)
	}
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name)
	}
	var all metricdata.ResourceMetrics
	if err := metrics.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "mcptask.tasks.created" {
			fmt.Println(m.Name, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		}
	}
	// Output:
	// created greet
	// mcptask.run greet
	// mcptask.tasks.created 1
}

// greetTools returns the tools of the example. Those of a real program are generated.
func greetTools() mcptask.Tools {
	greet := mcptask.NewTool(mcptask.ToolSpec{Name: "greet", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
		func(context.Context, *mcptask.Task, struct{}) (string, error) { return "hello", nil })
	return mcptask.Tools{Service: "Greeter", Impl: struct{}{}, Tools: []mcptask.Tool{greet}}
}
