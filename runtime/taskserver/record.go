package taskserver

import (
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// findInput returns the index of the question with the key, or -1.
func findInput(r *taskstore.Record, key string) int {
	return slices.IndexFunc(r.Inputs, func(in taskstore.Input) bool { return in.Key == key })
}

// isOutstanding reports whether the question with the key waits for an answer.
func isOutstanding(r *taskstore.Record, key string) bool {
	i := findInput(r, key)
	return i >= 0 && r.Inputs[i].State == taskstore.InputOutstanding
}

// hasAnswer reports whether a question of the handler is answered.
func hasAnswer(r *taskstore.Record) bool {
	return slices.ContainsFunc(r.Inputs, func(in taskstore.Input) bool { return in.State == taskstore.InputAnswered })
}

// isParked reports whether no handler runs until a question is answered. If a handler has asked several, any
// of their answers, or a withdrawal, lets it run.
func isParked(r *taskstore.Record) bool {
	parked := false
	for _, in := range r.Inputs {
		if in.Parked && in.State != taskstore.InputOutstanding {
			return false
		}
		parked = parked || in.Parked
	}
	return parked
}

// isResumable reports whether a task that was parked can run again: a question that it waited for is no longer open,
// and no other run has begun.
func isResumable(r *taskstore.Record) bool {
	return !r.Done() && slices.ContainsFunc(r.Inputs, func(in taskstore.Input) bool { return in.Parked && in.State != taskstore.InputOutstanding })
}

// isAnsweredByTool reports whether the question with the key is a form whose answer a
// tool takes.
func isAnsweredByTool(r *taskstore.Record, key string) bool {
	i := findInput(r, key)
	return i >= 0 && requiredCapability(r.Inputs[i].Request) == spec.Elicit && slices.Contains(r.CanAsk, spec.CallTool)
}

// isSameRun reports whether two records are of one run of one task.
func isSameRun(r taskstore.Record, other taskstore.Record) bool {
	return r.Claim == other.Claim && r.CreatedAt.Equal(other.CreatedAt)
}

// isRunLost reports whether the last run of a task whose worker is gone was lost.
func isRunLost(r *taskstore.Record) bool { return r.Claim.State == taskstore.ClaimRunning }

// hasWrite reports whether a part of the record comes from the write with the nonce: this version, its claim, or the
// end of a question. Others may have written since.
func hasWrite(r *taskstore.Record, nonce string) bool {
	return r.Nonce == nonce || r.Claim.Nonce == nonce || slices.ContainsFunc(r.Inputs, func(in taskstore.Input) bool { return in.Nonce == nonce })
}

// isExpired reports whether the task has expired at now.
func isExpired(r *taskstore.Record, now time.Time) bool { return !now.Before(r.ExpiresAt) }
