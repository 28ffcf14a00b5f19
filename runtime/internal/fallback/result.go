package fallback

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// state is the structured content of an answer that only reports a task.
type state struct {
	Task          string         `json:"task"`
	Status        mcptask.Status `json:"status"`
	StatusMessage string         `json:"statusMessage,omitempty"`
	// PollIntervalMs is how long to wait before the next poll.
	PollIntervalMs int64      `json:"pollIntervalMs,omitempty"`
	Questions      []question `json:"questions,omitempty"`
	// Hint is for a model that sees no more than the structured content.
	Hint string `json:"hint,omitempty"`
	// Next is the call that goes on with the task.
	Next *nextCall `json:"next,omitempty"`
}

// question is an open question of a task.
type question struct {
	Key  string `json:"key"`
	Text string `json:"text"`
	// Schema is the JSON Schema of the answer to a form.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// nextCall is a call of a fallback tool. If the tool is task_answer, the model adds the answer to the
// arguments.
type nextCall struct {
	Tool      string            `json:"tool"`
	Arguments map[string]string `json:"arguments"`
}

// stateSchema describes a state in the output schemas of tools (see widen).
const stateSchema = `{"type":"object","description":"The call has not finished: it goes on as a task.","properties":{` +
	`"task":{"type":"string"},"status":{"type":"string","enum":["working","input_required","completed","failed","cancelled"]},` +
	`"statusMessage":{"type":"string"},"pollIntervalMs":{"type":"integer"},"hint":{"type":"string"},` +
	`"questions":{"type":"array","description":"What the task waits for.","items":{"type":"object","properties":{` +
	`"key":{"type":"string"},"text":{"type":"string"},` +
	`"schema":{"type":"object","description":"The JSON Schema of the answer to a form."}},"required":["key","text"]}},` +
	`"next":{"type":"object","description":"The call to make next. If its arguments name a question, add the user's answer as \"answer\", or leave it out if the user declines.",` +
	`"properties":{"tool":{"type":"string"},"arguments":{"type":"object","properties":{"task":{"type":"string"},"question":{"type":"string"}},"required":["task"]}},` +
	`"required":["tool","arguments"]}},"required":["task","status"]}`

// newTaskOutcome returns the answer that reports a task: text for the model, structured content for
// programs. The status is that of 2025-11-25 in every revision: a tool error counts as a failure.
func (e set) newTaskOutcome(caller taskserver.Caller, r taskstore.Record, meta map[string]json.RawMessage) (*taskstore.Outcome, error) {
	text, err := e.describeTask(caller, r)
	if err != nil {
		return nil, err
	}
	s := &state{Task: r.ID, Status: protocol.ProjectStatus20251125(r), StatusMessage: r.StatusMessage}
	s.Next = e.findNext(caller, r)
	if !r.Done() {
		s.PollIntervalMs = max(r.Poll.Milliseconds(), 1)
		then := "make the next call."
		if s.Next == nil { // a program would call in a loop
			then = fmt.Sprintf("tell the user that another client has to answer its question, and call %s then.", e.prefix+taskserver.ToolTaskResult)
		}
		s.Hint = fmt.Sprintf("%s goes on as this task. Do not call it again: %s", r.Tool, then)
	}
	open := r.Outstanding()
	for _, in := range open {
		s.Questions = append(s.Questions, question{in.Key, protocol.DescribeQuestion(in), nil})
		if protocol.IsForm(in) {
			s.Questions[len(s.Questions)-1].Schema = in.Schema
		}
	}
	if len(open) > 0 {
		s.StatusMessage = protocol.JoinQuestions(open)
	}
	s.StatusMessage = protocol.ShortenMessage(s.StatusMessage)
	return newOutcome(&mcptask.Result{Content: []mcptask.Content{mcptask.TextContent(text)}, Meta: meta}, s)
}

// findNext returns the call that goes on with a task. It returns nil if the task waits for an answer that only another
// client can give.
func (e set) findNext(caller taskserver.Caller, r taskstore.Record) *nextCall {
	stuck := false
	for _, in := range r.Outstanding() {
		switch {
		case caller.Answers(in.Request):
		case e.isPassedOn(in):
			return &nextCall{e.prefix + taskserver.ToolTaskAnswer, map[string]string{"task": r.ID, "question": in.Key}}
		default:
			stuck = true
		}
	}
	if stuck {
		return nil
	}
	return &nextCall{e.prefix + taskserver.ToolTaskResult, map[string]string{"task": r.ID}}
}

// describeTask tells a model the task's state and the next step.
func (e set) describeTask(caller taskserver.Caller, r taskstore.Record) (string, error) {
	arguments, err := json.Marshal(map[string]string{"task": r.ID})
	if err != nil {
		return "", err
	}
	e.server.ShowPlace(&r)
	result := fmt.Sprintf("the tool %s with %s", e.prefix+taskserver.ToolTaskResult, arguments)
	var note string
	if r.StatusMessage != "" {
		note = ": " + r.StatusMessage
	}
	if r.Done() {
		return fmt.Sprintf("%s has ended as task %s (%s%s). Call %s for its result.",
			r.Tool, quote(r.ID), protocol.ProjectStatus20251125(r), note, result), nil
	}
	open := r.Outstanding()
	if len(open) == 0 {
		var immediate string
		if spec, _ := e.server.Tool(r.Tool); spec.Policy.Immediate != "" {
			immediate = " " + endSentence(spec.Policy.Immediate)
		}
		return fmt.Sprintf("%s has not finished yet: it goes on as task %s (%s%s).%s In about %s call %s: it waits for the result and gives it. "+
			"Do not call %s again for this, which would start the work anew; to stop it, call %s.",
			r.Tool, quote(r.ID), protocol.ProjectStatus20251125(r), note, immediate, formatPause(r.Poll), result, r.Tool, e.prefix+taskserver.ToolTaskCancel), nil
	}
	lines := []string{fmt.Sprintf("%s has not finished yet: it goes on as task %s, which waits for an answer.", r.Tool, quote(r.ID))}
	for _, in := range open {
		line, err := e.describeQuestion(caller, r, in)
		if err != nil {
			return "", err
		}
		lines = append(lines, line)
	}
	lines = append(lines, fmt.Sprintf("Then call %s. Do not call %s again for this, which would start the work anew.", result, r.Tool))
	return strings.Join(lines, "\n"), nil
}

// endSentence adds a full stop to a text that ends without punctuation.
func endSentence(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// isPassedOn reports whether a model can pass a question on to its user.
func (e set) isPassedOn(in taskstore.Input) bool { return e.asks && protocol.IsForm(in) }

// describeQuestion describes a question and the way to answer it.
func (e set) describeQuestion(caller taskserver.Caller, r taskstore.Record, in taskstore.Input) (string, error) {
	asked := fmt.Sprintf("Question %s: %s", quote(in.Key), protocol.DescribeQuestion(in))
	who := "This client"
	if in.Method == "elicitation/create" {
		who = "The user"
	}
	result, otherwise := e.prefix+taskserver.ToolTaskResult, "If that does not work:"
	byResult := fmt.Sprintf(" %s is asked when %s is called.", who, result)
	if caller.Revision != mcptask.Revision20260728 { // a session, whose client has the question
		byResult = fmt.Sprintf(" %s is being asked: call %s to wait for the answer.", who, result)
		otherwise = "Only if the user sees no question:"
	}
	switch can := caller.Answers(in.Request); {
	case can && e.isPassedOn(in):
		asked += byResult + " " + otherwise
	case can:
		return asked + byResult, nil
	case !e.isPassedOn(in):
		return fmt.Sprintf("%s This client has not declared that it can do that, and no tool takes the answer. "+
			"Tell the user that another client has to answer it, or call %s to stop the task.", asked, e.prefix+taskserver.ToolTaskCancel), nil
	}
	arguments, err := json.Marshal(map[string]string{"task": r.ID, "question": in.Key})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s Ask the user, then call the tool %s with %s and the answer as the member \"answer\", an object that fits the JSON Schema %s; "+
		"leave the member out if the user declines.", asked, e.prefix+taskserver.ToolTaskAnswer, arguments, in.Schema), nil
}

// newFinishedReply returns the answer for a task that has ended: the result of its call. An error
// becomes a tool error that the model can read, because the model's own call has not failed.
func newFinishedReply(r taskstore.Record) (taskserver.CallReply, error) {
	switch r.Outcome.Kind {
	case taskstore.OutcomeError:
		return newErrorReply(fmt.Sprintf("The task %s of %s has failed: %s", quote(r.ID), r.Tool, r.Outcome.Error))
	case taskstore.OutcomeCancelled:
		return newErrorReply(fmt.Sprintf("The task %s of %s was cancelled: it has no result.", quote(r.ID), r.Tool))
	}
	return taskserver.CallReply{Outcome: r.Outcome}, nil
}

// newErrorReply returns a tool error with a text.
func newErrorReply(text string) (taskserver.CallReply, error) {
	o, err := newOutcome(mcptask.ErrorResult(text), nil)
	return taskserver.CallReply{Outcome: o}, err
}

// newOutcome returns a result as an outcome. content is its structured content, or nil.
func newOutcome(result *mcptask.Result, content any) (*taskstore.Outcome, error) {
	var err error
	if content != nil {
		if result.Structured, err = json.Marshal(content); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(result)
	return &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: data, IsError: result.IsError}, err
}

// formatPause returns a duration in words, rounded up to whole seconds.
func formatPause(d time.Duration) string {
	seconds := int64((d + time.Second - 1) / time.Second)
	if seconds <= 1 {
		return "a second"
	}
	return fmt.Sprintf("%d seconds", seconds)
}

// quote quotes a name from outside, shortened for a message.
func quote(name string) string {
	return fmt.Sprintf("%q", text.Shorten(name, 200))
}
