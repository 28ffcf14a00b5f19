package protocol

import (
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/wiresep1686"
)

// RelatedTask reads from the _meta of a message which task it belongs to, and
// under which key that stands: the proposal has another than the releases (A-38,
// C-50). taskID is "" where it says none.
func RelatedTask(meta map[string]any) (key, taskID string) {
	for _, key := range []string{mcptask.MetaRelatedTask, wire.MetaRelatedTask} {
		related, _ := meta[key].(map[string]any)
		if id, _ := related["taskId"].(string); id != "" {
			return key, id
		}
	}
	return "", ""
}
