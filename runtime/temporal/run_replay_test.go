package temporal

import (
	"context"
	"crypto/rand"
	"flag"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

var saveHistories = flag.Bool("histories", false, "tests with a server write the histories that TestReplay replays")

// readHistory reads the history of a run of a workflow, to its end.
func readHistory(t *testing.T, c client.Client, id, run string) *historypb.History {
	t.Helper()
	history := new(historypb.History)
	for events := c.GetWorkflowHistory(t.Context(), id, run, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		history.Events = append(history.Events, event)
	}
	return history
}

// saveHistory writes a history for TestReplay.
func saveHistory(t *testing.T, history *historypb.History, name string) {
	t.Helper()
	if !*saveHistories {
		return
	}
	data, err := protojson.MarshalOptions{Multiline: true}.Marshal(history)
	if err == nil {
		err = os.WriteFile(filepath.Join("testdata", name+".json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplay checks that workflows of the past go on with this version of the workflow of tasks and of package
// taskflow. The histories are of runs on a server.
func TestReplay(t *testing.T) {
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) != 5 {
		t.Fatalf("%q, %v", names, err)
	}
	_, x := newSuite(t)
	for _, name := range names {
		replayer := worker.NewWorkflowReplayer()
		replayer.RegisterWorkflowWithOptions(releaseFlow, workflow.RegisterOptions{Name: "Release"})
		replayer.RegisterWorkflowWithOptions(x.keepTask, workflow.RegisterOptions{Name: workflowType})
		if err := replayer.ReplayWorkflowHistoryFromJSONFile(quiet{}, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServerHistory runs the workflow of a task through all that it does, on a server.
func TestServerHistory(t *testing.T) {
	address := flowAddress(t)
	for name, c := range map[string]struct {
		ends []taskserver.RunEnd
		then func(t *testing.T, x taskserver.Engine, task taskserver.Submission)
	}{
		"task-answered": {[]taskserver.RunEnd{taskserver.RunLeft, taskserver.RunWaits, taskserver.RunOver}, func(t *testing.T, x taskserver.Engine, task taskserver.Submission) {
			if err := x.Answered(t.Context(), task); err != nil {
				t.Error(err)
			}
		}},
		"task-cancelled": {[]taskserver.RunEnd{taskserver.RunWaits, taskserver.RunOver}, func(t *testing.T, x taskserver.Engine, task taskserver.Submission) {
			if err := x.Cancel(t.Context(), task); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			client := dialFlows(t, address, "default")
			waits := make(chan struct{})
			var runs atomic.Int32
			made, err := NewExecutor(client, Options{TaskQueue: rand.Text()})(func(context.Context, string) taskserver.RunEnd {
				end := c.ends[int(runs.Add(1))-1]
				if end == taskserver.RunWaits {
					close(waits)
				}
				return end
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = made.Close(context.Background()) })
			x, task := made.(taskserver.Engine), taskserver.Submission{TaskID: rand.Text(), Until: time.Now().Add(time.Hour)}
			if err := x.Submit(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			<-waits
			c.then(t, x, task)
			saveHistory(t, readHistory(t, client, task.TaskID, ""), name)
			if n := int(runs.Load()); n != len(c.ends) {
				t.Errorf("%d runs", n)
			}
		})
	}
}
