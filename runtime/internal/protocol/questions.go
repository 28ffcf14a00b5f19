package protocol

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/wire20260728"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// ShowTask returns a task as a caller sees it. While questions are open, their texts replace the
// status message. If the caller cannot be asked a question that the tool task_answer takes, the message
// says how to call that tool. A task that waits for a slot says so.
//
// In 2026-07-28 the status input_required comes with questions (E-30), and a caller gets only those that
// it can answer (T-38). So ShowTask shows a task as working if the caller can answer none of its
// open questions.
func ShowTask(s *taskserver.Backend, caller taskserver.Caller, r taskstore.Record) taskstore.Record {
	open := r.Outstanding()
	if r.Phase != taskstore.PhaseInputRequired || len(open) == 0 {
		s.ShowPlace(&r)
		return r
	}
	r.StatusMessage = JoinQuestions(open)
	if caller.Revision == mcptask.Revision20260728 && !slices.ContainsFunc(open, func(in taskstore.Input) bool { return caller.Answers(in.Request) }) {
		r.Phase = taskstore.PhaseRunning
	}
	cannotShow := func(in taskstore.Input) bool { return IsForm(in) && !caller.Answers(in.Request) }
	if i := slices.IndexFunc(open, cannotShow); i >= 0 {
		if tool := FindAnswerTool(s, r.Tool); tool != "" {
			// The questions leave room for how to answer, because the end of a long message is cut off.
			r.StatusMessage = fmt.Sprintf("%s To answer, call the tool %s with %s.", text.Shorten(r.StatusMessage, longestMessage/2), tool, formatAnswer(r.ID, open[i]))
		}
	}
	return r
}

// HasFallback reports whether the fallback tools serve a tool of a service: it takes tasks, and the
// service has fallback=tools.
func HasFallback(service mcptask.Tools, spec mcptask.ToolSpec) bool {
	return service.Fallback == mcptask.FallbackTools && spec.Policy.Task != mcptask.TaskForbidden
}

// FindAnswerTool returns the name of the fallback tool that takes answers for a tool. It returns "" if
// there is none, or the tool asks nothing.
func FindAnswerTool(s *taskserver.Backend, tool string) string {
	spec, _ := s.Tool(tool)
	service, ok := s.Service(tool)
	if !ok || !HasFallback(service, spec) || !Asks(service, spec) {
		return ""
	}
	return service.Prefix + taskserver.ToolTaskAnswer
}

// Asks reports whether a tool of a service may ask questions.
func Asks(service mcptask.Tools, spec mcptask.ToolSpec) bool {
	return service.Asks || len(spec.Questions) > 0
}

// IsForm reports whether a question is a form for a person. A model can pass such a question on to
// its user.
func IsForm(in taskstore.Input) bool {
	return in.Method == wire.MethodElicitationCreate && in.Schema != nil
}

// formatAnswer describes the arguments of the tool task_answer for a form: the answer has the form's
// fields with their types.
func formatAnswer(task string, in taskstore.Input) string {
	var form struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(in.Schema, &form) // every form has fields
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(form.Properties)) {
		fields = append(fields, fmt.Sprintf("%s:<%s>", quoteJSON(name), form.Properties[name].Type))
	}
	return fmt.Sprintf(`{"task":%s,"question":%s,"answer":{%s}}`, quoteJSON(task), quoteJSON(in.Key), strings.Join(fields, ","))
}

// quoteJSON returns a text as a JSON string.
func quoteJSON(s string) string {
	data, _ := json.Marshal(s) // strings always marshal
	return string(data)
}

// JoinQuestions returns the open questions as one text for people.
func JoinQuestions(open []taskstore.Input) string {
	if len(open) == 1 {
		return DescribeQuestion(open[0])
	}
	var texts []string
	size := 0
	for i, in := range open {
		if size > longestMessage { // the rest would be cut
			break
		}
		texts = append(texts, fmt.Sprintf("(%d) %s", i+1, DescribeQuestion(in)))
		size += len(texts[i])
	}
	return strings.Join(texts, " ")
}

// DescribeQuestion returns a question as text for people and models.
func DescribeQuestion(in taskstore.Input) string {
	q, err := mcptask.NewQuestion("", in.Key, in.Method, in.Params)
	switch {
	case err != nil:
	case in.Method == wire.MethodSamplingCreateMessage:
		return strings.TrimSpace("The tool asks the client's model for a message. " + readPrompt(in.Params))
	case in.Method == wire.MethodRootsList:
		return "The tool asks which directories the user has opened at the client."
	case q.URL != "":
		return strings.TrimSpace(q.Message + " Open " + q.URL)
	case q.Message != "":
		return q.Message
	}
	return fmt.Sprintf("The tool asks for %q.", text.Shorten(in.Key, 200))
}

// readPrompt returns the text of the last message that a model is asked to answer.
func readPrompt(params json.RawMessage) string {
	var request mcptask.SampleRequest
	if json.Unmarshal(params, &request) != nil || len(request.Messages) == 0 {
		return ""
	}
	if prompt := request.Messages[len(request.Messages)-1].Content.Text(); prompt != "" {
		return "It is to answer: " + text.Shorten(prompt, longestMessage)
	}
	return ""
}
