package mcptask_test

import (
	"flag"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// ci stands for the implementation of the service.
type ci struct{ pipeline.CI }

// The operator of the server decides how long a task is kept.
func ExampleTools_With() {
	ttl := flag.Duration("pipeline-ttl", 24*time.Hour, "how long the results of pipelines are kept")
	_ = flag.CommandLine.Parse([]string{"--pipeline-ttl=72h"}) // flag.Parse() in a program

	tools := pipeline.CITools(ci{}).With("run_pipeline", func(p *mcptask.Policy) {
		p.TTL = *ttl
	})
	tasks, err := taskserver.New(taskserver.Options{}, tools)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tasks.Close()
	spec, _ := tasks.Backend().Tool("run_pipeline")
	fmt.Println(spec.Policy.TTL)
	// Output: 72h0m0s
}
