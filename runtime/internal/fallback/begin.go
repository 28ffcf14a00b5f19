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

// begin calls a tool as a task and waits for it as long as a plain call may
// block. Before the wait is over nobody has learned of the task: one that ends
// leaves no record, and one whose caller leaves is stopped.
func begin(s *mcptask.Server, caller mcptask.Caller, tool string) Handler {
	return func(ctx context.Context, arguments json.RawMessage, call mcptask.CallRequest) (mcptask.CallReply, error) {
		began := time.Now()
		each := setOf(s, tool)
		call.Mode, call.Later = mcptask.ModeGrace, each.asks
		if progress := call.Progress; progress != nil {
			var over atomic.Bool
			defer over.Store(true)
			call.Progress = func(_ string, done, total float64, message string) {
				if !over.Load() { // afterwards the call has no stream
					progress("", done, total, message)
				}
			}
		}
		reply, err := s.Call(ctx, caller, tool, arguments, call)
		if err != nil || reply.Task == nil {
			return reply, err
		}
		waiting, cancel := within(ctx, began, waitOf(s, tool))
		defer cancel()
		defer context.AfterFunc(s.Closing(), cancel)()
		record, err := follow(waiting, s, caller, *reply.Task, call.Ask)
		switch {
		case err != nil:
		case record.Done():
			s.Abandon(record)
			return mcptask.CallReply{Outcome: record.Outcome}, nil
		case s.Closing().Err() != nil:
			err = shuttingDown()
		default:
			err = ctx.Err()
		}
		if err != nil {
			s.Abandon(record)
			if protocol.IsGone(err) {
				return failed(fmt.Sprintf("%s did not finish within the %v that its work is kept, and was cancelled.", tool, record.TTL()))
			}
			return mcptask.CallReply{}, err
		}
		// The generated client, which has called without a task, holds it then.
		described, err := protocol.DescribeTask(record)
		if err != nil {
			return mcptask.CallReply{}, err
		}
		outcome, err := each.going(caller, record, map[string]json.RawMessage{protocol.MetaTask: described})
		return mcptask.CallReply{Task: &record, Outcome: outcome}, err
	}
}
