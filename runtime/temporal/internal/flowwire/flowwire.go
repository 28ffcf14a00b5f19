// Package flowwire defines the exchange between package temporal and a workflow that uses package taskflow: the names
// of the query, the signal, the memo and the error, and their values. The values are encoded by the data converters of
// client and worker. Workflows that run when the program is replaced have the old values, so names and members stay as
// they are.
package flowwire

import (
	"encoding/json"
	"errors"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

const (
	// QueryState is the query that returns the workflow's State.
	QueryState = "mcptask.state"
	// SignalAnswer is the signal that brings an Answer.
	SignalAnswer = "mcptask.answer"
	// MemoTask is the field of the memo that has the Memo.
	MemoTask = "mcptask.task"
	// TypedErrorType is the type of an ApplicationError whose first detail is a TypedError.
	TypedErrorType = "mcptask.Error"
)

// TypedError is the code and the fields of a type under //mcptask:error, as a result's _meta has them.
type TypedError struct {
	Code string          `json:"code"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Memo says that package temporal has started the workflow.
type Memo struct {
	// Task is the ID of the task, or "" in a plain call.
	Task string `json:"task"`
	// Run counts the runs that have asked and continued as new, from 0. A retry of a run has its number.
	Run int `json:"run,omitempty"`
}

// State is the state that a workflow sends to its task.
type State struct {
	// Run is the ID of the run of the workflow.
	Run string `json:"run,omitempty"`
	// Reports counts the reports of progress. 0 means that there is none.
	Reports int64 `json:"reports,omitempty"`
	// Done, Total and Message are the newest report. A Total of 0 means unknown.
	Done    float64 `json:"done,omitempty"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
	// Questions has the open questions, in the order in which they were asked.
	Questions []Question `json:"questions,omitempty"`
}

// Question is a question that a workflow waits for.
type Question struct {
	// Key is unique in the task, and the same when the workflow is replayed or retried.
	Key     string `json:"key"`
	Message string `json:"message"`
	Input   Input  `json:"input"`
}

// Input is an mcptask.InputSpec.
type Input struct {
	Name   string          `json:"name,omitempty"`
	Schema json.RawMessage `json:"schema"`
}

// Answer is the answer to a question, or the refusal of one.
type Answer struct {
	Key string `json:"key"`
	// Content is the answer, unless there is a Refusal.
	Content json.RawMessage `json:"content,omitempty"`
	Refusal Refusal         `json:"refusal,omitempty"`
	// Text says why the question was refused.
	Text string `json:"text,omitempty"`
}

// Refusal names one of the errors of mcptask.Ask.
type Refusal string

// The refusals. RefusedOther stands for errors without a name.
const (
	RefusedDeclined  Refusal = "declined"
	RefusedDismissed Refusal = "dismissed"
	RefusedCannotAsk Refusal = "cannot_ask"
	RefusedInvalid   Refusal = "invalid_answer"
	RefusedOther     Refusal = "other"
)

// NewRefusal names an error of mcptask.Ask.
func NewRefusal(err error) Refusal {
	switch {
	case errors.Is(err, mcptask.ErrDeclined):
		return RefusedDeclined
	case errors.Is(err, mcptask.ErrDismissed):
		return RefusedDismissed
	case errors.Is(err, mcptask.ErrCannotAsk):
		return RefusedCannotAsk
	case errors.Is(err, mcptask.ErrInvalidAnswer):
		return RefusedInvalid
	}
	return RefusedOther
}

// Err returns the error that the refusal names, or nil for RefusedOther and for names that this version
// does not know.
func (r Refusal) Err() error {
	switch r {
	case RefusedDeclined:
		return mcptask.ErrDeclined
	case RefusedDismissed:
		return mcptask.ErrDismissed
	case RefusedCannotAsk:
		return mcptask.ErrCannotAsk
	case RefusedInvalid:
		return mcptask.ErrInvalidAnswer
	}
	return nil
}
