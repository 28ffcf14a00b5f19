// Command testserver runs a Temporal server in memory, for the example and the tests beside it. It has the
// namespace default. It prints its address, and ends when its standard input does.
//
// It is a module of its own: the newest server that builds with Go 1.26 needs an older SDK than the rest.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/temporaltest"
	"google.golang.org/protobuf/types/known/durationpb"
)

func main() {
	// An interrupt at the terminal is for the program that started this one. It may still need the server.
	signal.Ignore(os.Interrupt)
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	server := temporaltest.NewServer()
	defer server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := addNamespace(ctx, server.GetFrontendHostPort(), client.DefaultNamespace); err != nil {
		return err
	}
	if _, err := fmt.Println(server.GetFrontendHostPort()); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// addNamespace registers a namespace and waits until all parts of the server know it.
func addNamespace(ctx context.Context, address, name string) error {
	logger := sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))) // the SDK's own writes to standard output
	namespaces, err := client.NewNamespaceClient(client.Options{HostPort: address, Logger: logger})
	if err != nil {
		return err
	}
	defer namespaces.Close()
	err = namespaces.Register(ctx, &workflowservice.RegisterNamespaceRequest{Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
	if err != nil {
		return err
	}
	c, err := client.Dial(client.Options{HostPort: address, Namespace: name, Logger: logger})
	if err != nil {
		return err
	}
	defer c.Close()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		// The parts read the list of namespaces every few seconds. This asks those that run workflows.
		_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "probe", TaskQueue: "probe", WorkflowExecutionTimeout: time.Second}, "probe")
		if err == nil || ctx.Err() != nil {
			return err
		}
		<-look.C
	}
}
