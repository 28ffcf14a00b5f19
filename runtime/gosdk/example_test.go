package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// exampleCI implements the generated interface pipeline.CI.
type exampleCI struct{}

func (exampleCI) RunPipeline(ctx context.Context, task *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	report := pipeline.RunReport{Passed: true, Steps: []pipeline.Step{}}
	for i, name := range in.Steps {
		task.Progress(ctx, float64(i), float64(len(in.Steps)), name)
		if err := ctx.Err(); err != nil {
			return report, err
		}
		report.Steps = append(report.Steps, pipeline.Step{Name: name, Passed: true})
	}
	return report, nil
}

func (exampleCI) DeployService(ctx context.Context, task *mcptask.Task, in pipeline.DeployInput) (pipeline.DeployReport, error) {
	approval, err := pipeline.AskApproval(ctx, task, "ship", "Ship "+in.Service+"?")
	if err != nil || !approval.Approve {
		return pipeline.DeployReport{}, errors.Join(err, errors.New("not approved"))
	}
	return pipeline.DeployReport{Version: "1.2.3"}, nil
}

func (exampleCI) LintFile(context.Context, pipeline.LintInput) (pipeline.LintReport, error) {
	return pipeline.LintReport{}, nil
}

// NewHandler serves the generated tools beside the tools of the SDK's server, in both revisions on one URL.
func ExampleNewHandler() {
	ctx := context.Background()
	tasks, err := taskserver.New(taskserver.Options{}, pipeline.CITools(exampleCI{}))
	if err != nil {
		log.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	web := httptest.NewServer(handler) // http.Server in a real program
	defer web.Close()
	defer tasks.Close()

	conn, err := gosdk.Connect(ctx, web.URL, gosdk.ClientOptions{}) // 2026-07-28, else 2025-11-25
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	report, err := pipeline.NewCIClient(conn).RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/shop", Steps: []string{"build", "test"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Passed, len(report.Steps))
	// Output: true 2
}

// Connect returns a connection for generated clients. A token continues a call on another connection, in another
// process too. Answer answers the questions of handlers.
func ExampleConnect() {
	ctx := context.Background()
	url, stop := serveExample(taskserver.New(taskserver.Options{}, pipeline.CITools(exampleCI{})))
	defer stop()

	options := gosdk.ClientOptions{
		Answer: pipeline.AnswerApproval(func(_ context.Context, q mcptask.Question) (pipeline.Approval, error) {
			fmt.Println(q.Message)
			return pipeline.Approval{Approve: true}, nil
		}),
	}
	conn, err := gosdk.Connect(ctx, url, options)
	if err != nil {
		log.Fatal(err)
	}
	call, err := pipeline.NewCIClient(conn).StartDeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"})
	if err != nil {
		log.Fatal(err)
	}
	token, ok := call.Token()
	fmt.Println("a task:", ok)
	if err := conn.Close(); err != nil { // the task goes on
		log.Fatal(err)
	}

	again, err := gosdk.Connect(ctx, url, options)
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	call, err = pipeline.NewCIClient(again).ResumeDeployService(token)
	if err != nil {
		log.Fatal(err)
	}
	report, err := call.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("version:", report.Version)
	// Output:
	// a task: true
	// Ship api?
	// version: 1.2.3
}

// AddTaskTool takes what mcp.AddTool takes, and a policy: the handler stays as it is.
func ExampleAddTaskTool() {
	type input struct {
		Branch string `json:"branch"`
	}
	type output struct {
		Artifact string `json:"artifact"`
	}
	build := func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
		return nil, output{Artifact: in.Branch + ".tar.gz"}, nil
	}

	ctx := context.Background()
	tasks, err := taskserver.New(taskserver.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	err = gosdk.AddTaskTool(sdk, tasks, &mcp.Tool{Name: "build", Description: "Builds a branch."}, build,
		mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	web := httptest.NewServer(gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	defer web.Close()
	defer tasks.Close()

	conn, err := gosdk.Connect(ctx, web.URL, gosdk.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	call, err := mcptask.Start[output](ctx, conn, "build", input{Branch: "main"})
	if err != nil {
		log.Fatal(err)
	}
	_, isTask := call.Token()
	built, err := call.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(isTask, built.Artifact)
	// Output: true main.tar.gz
}

// StdioTransport serves the client that started the process. Write nothing else to standard output.
func ExampleStdioTransport() {
	serve := func(ctx context.Context) error {
		tasks, err := taskserver.New(taskserver.Options{}, pipeline.CITools(exampleCI{}))
		if err != nil {
			return err
		}
		defer tasks.Close()
		sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
		gosdk.AddTools(sdk, tasks)
		return sdk.Run(ctx, gosdk.StdioTransport(tasks))
	}
	if err := serve(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// serveExample serves tasks until stop is called.
func serveExample(tasks *taskserver.Server, err error) (url string, stop func()) {
	if err != nil {
		log.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	web := httptest.NewServer(gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	return web.URL, func() { _ = tasks.Close(); web.Close() }
}
