package fallback

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// newTaskHandler returns a handler that calls a tool as a task and waits for it as long as a plain call
// may block. Until the wait is over, the client does not know the task. So a task that ends in time
// leaves no record, and a task whose caller leaves is stopped.
func newTaskHandler(s *mcptask.Server, caller mcptask.Caller, tool string, carrier Carrier) Handler {
	return func(ctx context.Context, arguments json.RawMessage, call mcptask.CallRequest) (mcptask.CallReply, error) {
		began := time.Now()
		each := findSet(s, tool)
		call.Mode, call.Later = mcptask.ModeGrace, each.asks
		if progress := call.Progress; progress != nil {
			var over atomic.Bool
			defer over.Store(true)
			call.Progress = func(_ string, done, total float64, message string) {
				if !over.Load() { // later the call has no stream
					progress("", done, total, message)
				}
			}
		}
		reply, err := s.Call(ctx, caller, tool, arguments, call)
		if err != nil || reply.Task == nil {
			return reply, err
		}
		waiting, cancel := context.WithDeadline(ctx, began.Add(s.PlainWait(caller, tool, call.Progress != nil)))
		defer cancel()
		defer context.AfterFunc(s.Closing(), cancel)()
		record, err := follow(waiting, s, caller, *reply.Task, call.Ask, carrier)
		switch {
		case err != nil:
		case record.Done():
			s.Abandon(record)
			return mcptask.CallReply{Outcome: record.Outcome}, nil
		case s.Closing().Err() != nil:
			err = newShutdownError()
		default:
			err = ctx.Err()
		}
		if err != nil {
			s.Abandon(record)
			if protocol.IsGone(err) {
				return newErrorReply(fmt.Sprintf("%s did not finish within the %v that its work is kept, and was cancelled.", tool, record.TTL()))
			}
			return mcptask.CallReply{}, err
		}
		// The generated client called without a task. It gets the task here.
		described, err := protocol.DescribeTask(protocol.ShowQuestions(s, caller, record))
		if err != nil {
			return mcptask.CallReply{}, err
		}
		outcome, err := each.newTaskOutcome(caller, record, map[string]json.RawMessage{protocol.MetaTask: described})
		return mcptask.CallReply{Task: &record, Outcome: outcome}, err
	}
}
