// Package taskflow is for workflows that are tools: it reports their progress and asks questions.
//
// A workflow that temporal.Run starts calls [New] first. Run reads the progress and the open questions
// from it by a query, and sends the answers by a signal. A workflow that was started in another way can
// use the same code: its progress is not read, and its questions return mcptask.ErrCannotAsk.
//
// All functions are for workflow code. They are deterministic and may be called from several goroutines
// of the workflow.
package taskflow

import (
	"math"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// Task is a workflow's view of the task that it works for.
type Task struct {
	memo           flowwire.Memo
	isStartedByRun bool // temporal.Run has started the workflow, so its task can be asked
	state          flowwire.State
	keys           map[string]bool // those that this run has used
	waiting        []*question     // the open questions, in the order of state.Questions
}

// New returns the task of a workflow. Call it once in a run of the workflow, before anything else:
// a workflow that does not know the query after its first tasks is no longer asked for its progress.
func New(ctx workflow.Context) *Task {
	t := &Task{keys: map[string]bool{}}
	t.state.Run = workflow.GetInfo(ctx).WorkflowExecution.RunID // read only by the query: a reset changes it
	t.memo, t.isStartedByRun = readMemo(ctx)
	query := workflow.QueryHandlerOptions{Description: "The progress and the open questions of the task that waits for this workflow."}
	if err := workflow.SetQueryHandlerWithOptions(ctx, flowwire.QueryState, t.copyState, query); err != nil {
		panic(err) // the function is known, so it is a fault of this package
	}
	signal := workflow.SignalChannelOptions{Description: "An answer to a question that this workflow has asked."}
	answers := workflow.GetSignalChannelWithOptions(ctx, flowwire.SignalAnswer, signal)
	workflow.GoNamed(ctx, "answers of the task", func(ctx workflow.Context) {
		for {
			var answer flowwire.Answer
			if !answers.Receive(ctx, &answer) {
				return
			}
			t.takeAnswer(answer)
		}
	})
	return t
}

// readMemo reads the entry of temporal.Run in the memo. isStartedByRun is false if there is nothing.
func readMemo(ctx workflow.Context) (memo flowwire.Memo, isStartedByRun bool) {
	payload := workflow.GetInfo(ctx).Memo.GetFields()[flowwire.MemoTask]
	if payload == nil {
		return memo, false
	}
	// The client has encoded the memo with its data converter. A channel decodes with that of the worker,
	// which workflow code cannot get in another way.
	decoder := workflow.NewBufferedChannel(ctx, 1)
	decoder.SendAsync(&commonpb.Payloads{Payloads: []*commonpb.Payload{payload}})
	isStartedByRun = decoder.ReceiveAsync(&memo)
	return memo, isStartedByRun
}

// ID returns the ID of the task. It is "" if the workflow works for a plain call, or if temporal.Run did
// not start it.
func (t *Task) ID() string { return t.memo.Task }

// Progress tells the requestor how far the work is: done of total, in any unit. A total of 0 means
// unknown. The newest report is read about once in the WorkflowOptions.Poll of temporal.Run, so
// the requestor may not see those before it. It adds nothing to the history of the workflow. Of a long
// message it tells the first 4 KiB.
func (t *Task) Progress(done, total float64, message string) {
	t.state.Reports++
	t.state.Done, t.state.Total, t.state.Message = finite(done), finite(total), cutMessage(message)
}

// maxMessage is how many bytes of a message are told. All of the state has to fit into the answer to a query.
const maxMessage = 4 << 10

// cutMessage returns the beginning of a message.
func cutMessage(message string) string {
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(message, "")
}

// Message sets the task's status message.
func (t *Task) Message(message string) { t.Progress(0, 0, message) }

// finite returns 0 for a number that JSON does not have.
func finite(n float64) float64 {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// copyState is the handler of the query.
func (t *Task) copyState() (flowwire.State, error) { return t.state, nil }
