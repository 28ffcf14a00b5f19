package mcptasktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
)

// exampleT stands for the *testing.T that a test has.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (t *exampleT) Helper()                      {}
func (t *exampleT) Logf(string, ...any)          {}
func (t *exampleT) Errorf(f string, args ...any) { fmt.Printf("FAIL: "+f+"\n", args...) }
func (t *exampleT) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (t *exampleT) Context() context.Context     { return context.Background() }
func (t *exampleT) Cleanup(f func())             { t.cleanups = append(t.cleanups, f) }
func (t *exampleT) end() {
	for i := range t.cleanups {
		t.cleanups[len(t.cleanups)-1-i]()
	}
}

// A handler is called like any method. Its questions get scripted answers.
func ExampleNewTask() {
	t := new(exampleT) // in a test: its own t
	defer t.end()

	task := mcptasktest.NewTask(t, mcptasktest.Decline[pipeline.Approval]("ship"))
	_, err := ci{}.DeployService(t.Context(), task, pipeline.DeployInput{Service: "api", Environment: "production"})
	fmt.Println("declined:", errors.Is(err, mcptask.ErrDeclined))

	task = mcptasktest.NewTask(t, mcptasktest.Accept("ship", pipeline.Approval{Approve: true}))
	report, err := ci{}.DeployService(t.Context(), task, pipeline.DeployInput{Service: "api", Version: "1.2.3"})
	fmt.Println("shipped:", report.Version, err)
	// Output:
	// declined: true
	// shipped: 1.2.3 <nil>
}

// This is the whole way in one process: the generated client, the wire of one revision and the
// generated tools.
func ExampleConnect() {
	t := new(exampleT) // in a test: its own t
	defer t.end()

	conn := mcptasktest.Connect(t, mcptask.Revision20260728, mcptasktest.Options{
		Answer: pipeline.AnswerApproval(func(_ context.Context, q mcptask.Question) (pipeline.Approval, error) {
			fmt.Println("asked:", q.Message)
			return pipeline.Approval{Approve: true}, nil
		}),
	}, pipeline.CITools(ci{}))
	report, err := pipeline.NewCIClient(conn).DeployService(t.Context(),
		pipeline.DeployInput{Service: "api", Environment: "staging", Version: "1.2.3"})
	fmt.Println("shipped:", report.Version, err)
	// Output:
	// asked: Ship it?
	// shipped: 1.2.3 <nil>
}
