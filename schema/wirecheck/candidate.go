package wirecheck

import (
	"encoding/json"
	"fmt"
	"slices"
)

// task holds the members that distinguish a task of the two revisions.
type task struct {
	LastUpdatedAt json.RawMessage `json:"lastUpdatedAt"`
}

// checkRevisionWords finds members of 2025-11-25 in results or params of its release candidate, and
// the other way round. The schemas of both allow additional members.
func checkRevisionWords(revision string, content json.RawMessage) error {
	var m struct {
		task

		Task  task   `json:"task"`
		Tasks []task `json:"tasks"`
		Tools []struct {
			Execution   json.RawMessage `json:"execution"`
			Annotations struct {
				TaskHint *string `json:"taskHint"`
			} `json:"annotations"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(content, &m) // content with another structure has no such member
	updated := slices.ContainsFunc(append(m.Tasks, m.task, m.Task), func(t task) bool { return t.LastUpdatedAt != nil })
	if revision == Candidate && updated {
		return fmt.Errorf("lastUpdatedAt in %s: %.500s", revision, content)
	}
	for _, tool := range m.Tools {
		hint := tool.Annotations.TaskHint
		switch {
		case revision == Candidate && tool.Execution != nil, revision != Candidate && hint != nil:
			return fmt.Errorf("the tool has another revision's words in %s: %.500s", revision, content)
		case hint != nil && !slices.Contains([]string{"never", "optional", "always"}, *hint): // B-14
			return fmt.Errorf("the tool's hint is %q: %.500s", *hint, content)
		}
	}
	return nil
}
