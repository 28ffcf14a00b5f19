package fallback

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	mostListed = 10              // tasks in a list
	listsEnded = time.Hour       // how long a task is listed after its end
	mostPages  = 40              // pages of the store that one list reads
	firstSpan  = 4 * time.Second // before now, which a list of many tasks reads first
)

const (
	inputList  = `{"type":"object","properties":{}}`
	listSchema = `{"type":"object","properties":{` +
		`"tasks":{"type":"array","description":"The tasks, newest first.","items":{"type":"object","properties":{` +
		`"tool":{"type":"string"},"task":{"type":"string"},"status":{"type":"string","enum":["working","input_required","completed","failed","cancelled"]},` +
		`"statusMessage":{"type":"string"},"ageSeconds":{"type":"integer","description":"How long ago the task was created."},` +
		`"next":{"type":"object","description":"The call that gives the result, or waits for it.","properties":{"tool":{"type":"string"},` +
		`"arguments":{"type":"object","properties":{"task":{"type":"string"}},"required":["task"]}},"required":["tool","arguments"]}},` +
		`"required":["tool","task","status","ageSeconds","next"]}},` +
		`"more":{"type":"boolean","description":"Whether there are, or may be, older tasks that the list leaves out."}},"required":["tasks","more"]}`
)

// taskList is the structured content of task_list.
type taskList struct {
	Tasks []listedTask `json:"tasks"`
	More  bool         `json:"more"`
}

// listedTask is a task in the list.
type listedTask struct {
	Tool          string         `json:"tool"`
	Task          string         `json:"task"`
	Status        mcptask.Status `json:"status"`
	StatusMessage string         `json:"statusMessage,omitempty"`
	AgeSeconds    int64          `json:"ageSeconds"`
	Next          nextCall       `json:"next"`
}

// list is the handler of task_list. It lists the caller's tasks of the set's tools that have not ended, or have ended in
// the last hour.
func (h helper) list(ctx context.Context, _ json.RawMessage, _ taskserver.CallRequest) (taskserver.CallReply, error) {
	if h.caller.Principal == "" {
		return newErrorReply(fmt.Sprintf("%s shows only the tasks of a caller that the server knows, and this call has no authentication. "+
			"Without it, a task is found only by its ID.", h.prefix+taskserver.ToolTaskList))
	}
	records, more, err := h.findRecent(ctx)
	if err != nil {
		return taskserver.CallReply{}, err
	}
	now := h.server.SureNow()
	content := taskList{Tasks: make([]listedTask, len(records)), More: more}
	lines := []string{"Your tasks that have not ended, or have ended in the last hour, newest first:"}
	for i, r := range records {
		t := listedTask{Tool: r.Tool, Task: r.ID, Status: protocol.ProjectStatus20251125(r), StatusMessage: r.StatusMessage,
			AgeSeconds: max(int64(now.Sub(r.CreatedAt)/time.Second), 0), Next: nextCall{h.prefix + taskserver.ToolTaskResult, map[string]string{"task": r.ID}}}
		if open := r.Outstanding(); len(open) > 0 {
			t.StatusMessage = protocol.JoinQuestions(open)
		}
		t.StatusMessage = protocol.ShortenMessage(t.StatusMessage)
		content.Tasks[i] = t
		line := fmt.Sprintf("%d. %s: %s, created %v ago", i+1, t.Tool, t.Status, time.Duration(t.AgeSeconds)*time.Second)
		if t.StatusMessage != "" {
			line += ": " + t.StatusMessage
		}
		arguments, err := json.Marshal(t.Next.Arguments)
		if err != nil {
			return taskserver.CallReply{}, err
		}
		lines = append(lines, fmt.Sprintf("%s Next, call %s with %s.", endSentence(line), t.Next.Tool, arguments))
	}
	if len(records) == 0 {
		lines = []string{"You have no task here that has not ended, or has ended in the last hour."}
	}
	if more {
		lines = append(lines, "There may be older ones, which this list leaves out.")
	}
	outcome, err := newOutcome(&mcptask.Result{Content: []mcptask.Content{mcptask.TextContent(strings.Join(lines, "\n"))}}, content)
	return taskserver.CallReply{Outcome: outcome}, err
}

// findRecent returns the tasks to list, newest first, and whether there may be more. A store lists tasks from the
// oldest on. So if the caller has more than a page, findRecent reads the last seconds first, and then ever longer spans
// of time before them. It gives up after mostPages.
func (h helper) findRecent(ctx context.Context) (found []taskstore.Record, more bool, err error) {
	page, rest, err := h.server.List(ctx, h.caller, taskstore.Position{})
	if err != nil {
		return nil, false, err
	}
	if !rest {
		found = h.selectListed(page)
		return found[:min(len(found), mostListed)], len(found) > mostListed, nil
	}
	oldest, now := page[0].CreatedAt, h.server.Now()
	var begin, end time.Time // of the span; zero means the beginning of the list, and its end
	for span, pages := firstSpan, 1; len(found) <= mostListed && !more; span, end = span*4, begin {
		if begin = now.Add(-span); begin.Before(oldest) {
			begin = time.Time{}
		}
		var listed []taskstore.Record
		for position := (taskstore.Position{CreatedAt: begin}); ; {
			if pages++; pages > mostPages {
				more = true
				break
			}
			if page, rest, err = h.server.List(ctx, h.caller, position); err != nil {
				return nil, false, err
			}
			if i := slices.IndexFunc(page, func(r taskstore.Record) bool { return !end.IsZero() && !r.CreatedAt.Before(end) }); i >= 0 {
				page, rest = page[:i], false
			}
			listed = append(h.selectListed(page), listed...)
			if !rest {
				break
			}
			last := page[len(page)-1]
			position = taskstore.Position{CreatedAt: last.CreatedAt, ID: last.ID}
		}
		if found = append(found, listed...); begin.IsZero() {
			break
		}
	}
	return found[:min(len(found), mostListed)], more || len(found) > mostListed, nil
}

// selectListed returns those of a page's records that are to be listed, newest first.
func (h helper) selectListed(page []taskstore.Record) (listed []taskstore.Record) {
	now := h.server.SureNow()
	for _, r := range slices.Backward(page) {
		service, ok := h.server.Service(r.Tool)
		if ok && service.Prefix == h.prefix && Serves(h.server, r.Tool) && now.Before(r.ExpiresAt) && (!r.Done() || now.Sub(r.TerminalAt) < listsEnded) {
			listed = append(listed, r)
		}
	}
	return listed
}
