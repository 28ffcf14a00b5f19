package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

const (
	// unknownQueries is how many queries in a row the workflow may not know. After them, it is not queried again.
	unknownQueries = 5
	// unreadablePause is the longest pause after a query whose answer is not readable.
	unreadablePause = time.Minute
	// queryPatience bounds one query. It needs a worker.
	queryPatience = 10 * time.Second
)

// errUnreadable says that the answer to a query is not the state of a workflow.
var errUnreadable = errors.New("temporal: the state is not readable")

// errPanicked says that the client of Temporal panicked.
var errPanicked = errors.New("temporal: the client panicked")

// follower carries the progress and the questions of a running workflow to its task.
type follower struct {
	*flow
	work sync.WaitGroup
	wake chan struct{} // gets a value after an answer, since the state changes soon
	// isUnread says that the task was told that its result cannot be read yet. Nothing else is told meanwhile.
	isUnread atomic.Bool
	// hidesReport says that the task's message tells of a failure in place of the newest report.
	hidesReport atomic.Bool

	// Only the goroutine of follow uses these.
	questions map[string]*relayedQuestion
	report    report // the newest that the task has
	openKeys  string // of the questions in the newest state
}

// report is a report of progress. The count tells it from another one with the same words.
type report struct {
	count       int64
	done, total float64
	message     string
}

// relayedQuestion is a question of the workflow that the task asks.
type relayedQuestion struct {
	run    string                          // the run of the workflow that gets the answer
	cancel context.CancelCauseFunc         // ends the question
	answer atomic.Pointer[flowwire.Answer] // nil while the question is open
	// forms has the schemas with which it was asked, this one last. While old and new workers share a queue, either form
	// may come.
	forms []json.RawMessage
	done  chan struct{} // closed when the task no longer asks it
}

// hasForm reports whether the question was asked in the form of q.
func (r *relayedQuestion) hasForm(q flowwire.Question) bool {
	return slices.ContainsFunc(r.forms, func(asked json.RawMessage) bool { return value.IsSameForm(asked, q.Input.Schema) })
}

// startFollower follows a workflow until ctx ends.
func startFollower(ctx context.Context, f *flow) *follower {
	follower := &follower{flow: f, wake: make(chan struct{}, 1), questions: map[string]*relayedQuestion{}}
	follower.hidesReport.Store(f.task.Attempt() > 1) // an earlier run of the handler may have told a failure
	follower.work.Go(func() {
		defer guard.Recover(nil, "following of the workflow "+f.name)
		follower.follow(ctx)
	})
	return follower
}

// wait waits until all goroutines of the follower have ended. The caller has ended their ctx.
func (f *follower) wait() { f.work.Wait() }

// follow queries the workflow until ctx ends, or until it turns out not to know the query.
func (f *follower) follow(ctx context.Context) {
	slowest := slowestPoll * f.options.Poll
	pause, unknown, failed := f.options.Poll, 0, 0
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
			pause = f.options.Poll
		case <-timer.C:
			state, err := f.query(ctx)
			if words := describeQueryFailure(err); words == "" {
				failed = 0
			} else if failed++; failed == toldFailures && !f.isUnread.Load() {
				f.hidesReport.Store(true)
				f.task.Message(ctx, "the workflow "+f.name+" "+words)
			}
			if !isUnknownQuery(err) {
				unknown = 0
			} else if unknown++; unknown == unknownQueries {
				return
			}
			switch {
			case err == nil && f.takeState(ctx, state):
				pause = f.options.Poll
			case errors.Is(err, errUnreadable):
				pause = min(pause+pause/2, max(slowest, unreadablePause))
			default:
				pause = min(pause+pause/2, slowest)
			}
		}
		timer.Reset(pause)
	}
}

// query asks the workflow for its state.
func (f *follower) query(ctx context.Context) (state flowwire.State, err error) {
	defer guard.Then(nil, "the query of the workflow "+f.name, func() { err = errUnreadable })
	ctx, cancel := context.WithTimeout(ctx, queryPatience)
	defer cancel()
	value, err := f.client.QueryWorkflow(ctx, f.id, "", flowwire.QueryState)
	if err != nil {
		return state, err
	}
	if err := value.Get(&state); err != nil {
		return state, errUnreadable
	}
	return state, nil
}

// describeQueryFailure says in words for the model why a workflow cannot be followed. It returns "" if it can, or if
// the reason passes by itself.
func describeQueryFailure(err error) string {
	switch {
	case isStuck(err):
		return "does not go on: its code panics, or its result is too large for Temporal"
	case errors.Is(err, errUnreadable):
		return "goes on, but its progress and its questions cannot be read"
	}
	return ""
}

// isStuck reports whether Temporal cannot query a workflow because its code fails again and again. The workflow goes on
// when its workers have better code.
func isStuck(err error) bool {
	var notReady *serviceerror.WorkflowNotReady
	return errors.As(err, &notReady) && strings.Contains(notReady.Message, "failed state")
}

// isUnknownQuery reports whether a workflow has no such query. The SDKs of Temporal say so only in words:
// those of Go and Java, that of TypeScript, and those of Python, .NET and Ruby.
func isUnknownQuery(err error) bool {
	var failed *serviceerror.QueryFailed
	if !errors.As(err, &failed) {
		return false
	}
	words := strings.ToLower(failed.Error())
	for _, known := range []string{"unknown query", "did not register a handler", "expected but not found"} {
		if strings.Contains(words, known) {
			return true
		}
	}
	return false
}

// takeState tells the task the news in a state. It reports whether there are any.
func (f *follower) takeState(ctx context.Context, state flowwire.State) (isNew bool) {
	newest := report{state.Reports, state.Done, state.Total, state.Message}
	if newest != f.report && newest.count > 0 { // a run that was continued as new begins with none
		f.report, isNew = newest, true
	}
	if !f.isUnread.Load() && (f.hidesReport.Swap(false) || isNew) {
		f.tellReport(ctx)
	}
	open := map[string]bool{}
	var keys strings.Builder
	for _, q := range state.Questions {
		open[q.Key] = true
		keys.WriteString(q.Key)
		keys.WriteByte(0)
		f.takeQuestion(ctx, state.Run, q)
	}
	for key, q := range f.questions {
		if !open[key] && q.answer.Load() == nil {
			q.cancel(nil) // the workflow no longer waits for it
			delete(f.questions, key)
		}
	}
	if keys.String() != f.openKeys {
		f.openKeys, isNew = keys.String(), true
	}
	return isNew
}

// tellUnreadResult tells the task why it does not end. Any goroutine may call it.
func (f *follower) tellUnreadResult(ctx context.Context) {
	f.isUnread.Store(true)
	f.task.Message(ctx, "the result of the workflow "+f.name+" cannot be read yet: its data converter fails")
}

// forgetUnreadResult lets the task be told reports again, the newest of them at the next query.
func (f *follower) forgetUnreadResult() {
	defer guard.Recover(nil, "the wait for the workflow "+f.name)
	if f.isUnread.Swap(false) {
		f.hidesReport.Store(true)
	}
}

// tellReport tells the task the newest report. If there is none, the message that the handler left before is not known
// here.
func (f *follower) tellReport(ctx context.Context) {
	if f.report.count == 0 {
		f.task.Message(ctx, "the workflow "+f.name+" goes on")
		return
	}
	f.task.Progress(ctx, f.report.done, f.report.total, f.report.message)
}

// takeQuestion asks a question that is open in a run of the workflow, if it or its form is new. If an earlier run got the
// answer, this run gets it too: a retry asks again, and a reset may drop signals. So the follower keeps all answers.
// Refusals are among them: the task would ask again under another key, which the next run of the handler does not know.
func (f *follower) takeQuestion(ctx context.Context, run string, q flowwire.Question) {
	former := f.questions[q.Key]
	switch {
	case former == nil, !former.hasForm(q):
		asking, cancel := context.WithCancelCause(ctx)
		relayed := &relayedQuestion{run: run, done: make(chan struct{}), cancel: cancel}
		if former != nil {
			former.cancel(cause.ErrAskedAnew)
			relayed.forms = former.forms
			asking = context.WithValue(asking, cause.NewForm{}, true)
		}
		relayed.forms = append(slices.Clip(relayed.forms), q.Input.Schema)
		f.questions[q.Key] = relayed
		f.work.Go(func() {
			defer guard.Recover(nil, "an answer for the workflow "+f.name)
			defer cancel(nil)
			defer close(relayed.done)
			if former != nil {
				<-former.done
			}
			if answer, ok := f.ask(asking, q); ok && f.isFormCurrent(asking, relayed, answer) {
				relayed.answer.Store(&answer)
				f.sendAnswer(asking, answer)
			}
		})
	case former.run != run && former.answer.Load() != nil:
		former.run = run
		f.work.Go(func() {
			defer guard.Recover(nil, "an answer for the workflow "+f.name)
			f.sendAnswer(ctx, *former.answer.Load())
		})
	}
}

// isFormCurrent reports whether the workflow still asks in a form that the answer was given for. If its workers were replaced,
// it may ask in another form, which follow has not seen yet. isFormCurrent waits for a worker, since no answer has an effect
// without one.
func (f *follower) isFormCurrent(ctx context.Context, relayed *relayedQuestion, answer flowwire.Answer) bool {
	if answer.Refusal != "" {
		return true
	}
	var backoff backoff
	for {
		state, err := f.query(ctx)
		switch i := slices.IndexFunc(state.Questions, func(q flowwire.Question) bool { return q.Key == answer.Key }); {
		case ctx.Err() != nil:
			return false
		case err == nil:
			return i < 0 || relayed.hasForm(state.Questions[i])
		case !isOutage(err) && !isWithoutWorker(err), !backoff.wait(ctx):
			return ctx.Err() == nil
		}
	}
}

// isWithoutWorker reports whether Temporal refuses a query because no worker has come for a while.
func isWithoutWorker(err error) bool {
	var refused *serviceerror.FailedPrecondition
	return errors.As(err, &refused) && strings.Contains(refused.Message, "no poller")
}

// ask asks a question of the workflow in its task. ok is false if there is nothing to send: the workflow no longer
// waits, or the run of the handler ends.
func (f *follower) ask(ctx context.Context, q flowwire.Question) (answer flowwire.Answer, ok bool) {
	defer guard.Then(nil, "a question of the workflow "+f.name, func() {
		answer, ok = flowwire.Answer{Key: q.Key, Refusal: flowwire.RefusedOther, Text: "the question could not be asked"}, true
	}, "question", q.Key)
	input := mcptask.InputSpec{Name: q.Input.Name, Message: q.Message, Schema: string(q.Input.Schema)}
	step := f.nameStep(q.Key)
	content, err := mcptask.Ask[json.RawMessage](ctx, f.task, input, step, q.Message)
	switch {
	case err == nil:
		return flowwire.Answer{Key: q.Key, Content: content}, true
	case ctx.Err() != nil, errors.Is(err, mcptask.ErrServerClosed), errors.Is(err, mcptask.ErrCancelled), errors.Is(err, mcptask.ErrExpired):
		return answer, false
	}
	answer = flowwire.Answer{Key: q.Key, Refusal: flowwire.NewRefusal(err), Text: strings.TrimPrefix(err.Error(), step+": ")}
	var wire *mcptask.Error
	if errors.As(err, &wire) { // such as that of a limit
		answer.Text = wire.Message
	}
	return answer, true
}

// nameStep returns the name of a question of the workflow in its task. The same step of another workflow is another
// question. Otherwise a handler that runs again, and that finds one of its workflows closed, could take the answer to
// that workflow's question for the answer to the other's.
func (f *flow) nameStep(key string) string {
	name := escapePart(f.name)
	if f.options.Name != "" {
		name += "/" + escapePart(f.options.Name)
	}
	return name + "/" + escapePart(key)
}

// sendAnswer signals an answer to the workflow. It tries again until ctx ends. An answer that Temporal does not take
// becomes a refusal. If Temporal does not take that either, the workflow goes on waiting, and the task says so.
func (f *follower) sendAnswer(ctx context.Context, answer flowwire.Answer) {
	var backoff backoff
	unsent := 0 // how often the data converter has failed
	for {
		err := f.try("an answer for", func() error {
			return f.client.SignalWorkflow(ctx, f.id, "", flowwire.SignalAnswer, answer)
		})
		switch {
		case err == nil:
			if unsent >= toldFailures {
				f.hidesReport.Store(true)
			}
			select {
			case f.wake <- struct{}{}:
			default:
			}
			return
		case isNotFound(err): // the workflow is over
			return
		case isOutage(err), isDenied(err): // these pass, so the answer is sent again
		case isCodecFailure(err):
			if unsent++; unsent == toldFailures {
				f.task.Message(ctx, "an answer for the workflow "+f.name+" cannot be sent yet: its data converter fails")
			}
		case answer.Refusal != "":
			f.task.Message(ctx, "the workflow "+f.name+" waits for an answer, which Temporal does not take")
			return
		default:
			answer = flowwire.Answer{Key: answer.Key, Refusal: flowwire.RefusedOther, Text: "the answer was not delivered: Temporal does not take it"}
		}
		if !backoff.wait(ctx) {
			return
		}
	}
}
