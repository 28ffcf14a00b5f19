package protocol

import (
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

// metaProposedRelatedTask is the key of the related task in the proposal SEP-1686. Servers that
// are older than the releases use it.
const metaProposedRelatedTask = "modelcontextprotocol.io/related-task"

// FindRelatedTask reads from the _meta of a message which task it belongs to. key is the member
// that says so, since the proposal has another than the releases (A-38, C-50). taskID is "" if the
// message belongs to none.
func FindRelatedTask(meta map[string]any) (key, taskID string) {
	for _, key := range []string{spec.MetaRelatedTask, metaProposedRelatedTask} {
		related, _ := meta[key].(map[string]any)
		if id, _ := related["taskId"].(string); id != "" {
			return key, id
		}
	}
	return "", ""
}
