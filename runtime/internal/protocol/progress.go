package protocol

import (
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// MetaProgress is the key in the _meta of a task under which a server sends the task's progress. The
// statusMessage has it only as text.
const MetaProgress = "io.github.mcptaskgen/progress"

// MetaStale is the key in the _meta of a task under which a server says why it cannot run the task as it is stored. In
// the _meta of a list, its value is an object with the reasons by task ID.
const MetaStale = "io.github.mcptaskgen/stale"

// MetaTool is the key in the _meta of a list of tasks under which a server names the tools of the tasks: an object with
// the names by task ID. A caller that gets one task by its ID has its tool from the call.
const MetaTool = "io.github.mcptaskgen/tool"

// listMeta is the _meta of a list of tasks: by key, what it says of each task, by task ID.
type listMeta map[string]map[string]string

// add adds what a key says of a task, unless it is "".
func (m listMeta) add(key, taskID, text string) {
	if text == "" {
		return
	}
	if m[key] == nil {
		m[key] = map[string]string{}
	}
	m[key][taskID] = text
}

// readListMeta reads the _meta of a peer's list. It leaves out what has another form.
func readListMeta(raw json.RawMessage) (meta listMeta) {
	_ = json.Unmarshal(raw, &meta) // it goes on after a value of another form
	return meta
}

// taskProgress is the value under MetaProgress. Its members are named as in a progress notification.
type taskProgress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
}

// taskMeta returns the _meta of a task: its progress, and why it is stale. It returns nil if it has neither.
func taskMeta(r taskstore.Record, stale string) object {
	meta := progressMeta(r)
	if stale == "" {
		return meta
	}
	if meta == nil {
		meta = object{}
	}
	meta[MetaStale], _ = json.Marshal(stale) // a string always marshals
	return meta
}

// progressMeta returns the progress of a task, or nil if its handler has reported none.
func progressMeta(r taskstore.Record) object {
	if r.Progress == (taskstore.Progress{}) {
		return nil
	}
	report := r.Report()
	data, err := json.Marshal(taskProgress{report.Done, report.Total, ShortenMessage(report.Message)})
	if err != nil { // JSON has no infinity
		return nil
	}
	return object{MetaProgress: data}
}

// readStale reads why a peer's task is stale from its _meta, or "".
func readStale(meta json.RawMessage) string {
	reason, _ := wire.NewObject(meta).Text(MetaStale)
	return reason
}

// encodeTask encodes the projection of a task, with its _meta.
func encodeTask(projection any, r taskstore.Record, stale string) (json.RawMessage, error) {
	task, err := json.Marshal(projection)
	meta := taskMeta(r, stale)
	if err != nil || meta == nil {
		return task, err
	}
	data, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	return addMember(task, "_meta", data)
}

// readProgress reads the progress of a peer's task. If the peer sends no numbers, the report has the
// status message alone.
func readProgress(t PeerTask) mcptask.ProgressReport {
	var p *taskProgress
	if json.Unmarshal(wire.NewObject(t.Meta).Get(MetaProgress), &p) != nil || p == nil {
		return mcptask.ProgressReport{Message: t.StatusMessage}
	}
	return mcptask.ProgressReport{Done: p.Progress, Total: max(p.Total, 0), Message: p.Message}
}
