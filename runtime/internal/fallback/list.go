package fallback

import (
	"bytes"
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// List changes a result of tools/list for its caller. A caller that declares the extension sees the
// fallback tools only if its tasks may ask questions that it cannot show; see Defers. Any other caller sees
// them, and learns that it may call the tools behind them plainly: their output may be that of a
// running task, and tasks are not required. Otherwise plain calls would be refused (C-13). A program
// whose profile says PrefersPlain learns that optional tools take no tasks. Only a caller with a principal
// sees task_list.
//
// The list depends on the capabilities of the caller. So it is marked as private if the revision has
// caches.
func List(s *taskserver.Backend, caller taskserver.Caller, declares bool, result json.RawMessage) (json.RawMessage, error) {
	if len(listSets(s)) == 0 {
		return result, nil
	}
	return protocol.EditObject(result, func(list map[string]json.RawMessage) error {
		if list["cacheScope"] != nil && caller.Revision == mcptask.Revision20260728 { // older revisions have no caches
			list["cacheScope"] = json.RawMessage(`"private"`)
		}
		var tools []json.RawMessage
		if err := json.Unmarshal(list["tools"], &tools); err != nil {
			return err
		}
		shown := []json.RawMessage{}
		for _, entry := range tools {
			name, _ := wire.NewObject(entry).Text("name")
			each, kind, helps := find(s, name)
			switch {
			case kind == taskserver.ToolTaskList && caller.Principal == "":
				continue // anonymous callers cannot be told apart
			case helps && declares && (!each.asks || showsForms(caller)):
				continue
			case (!declares || IsPlain(s, caller, name)) && Serves(s, name):
				var err error
				if entry, err = offerPlain(entry, s.ClientProfile(caller).PrefersPlain); err != nil {
					return err
				}
			}
			shown = append(shown, entry)
		}
		list["tools"] = wire.JoinArray(shown)
		return nil
	})
}

// offerPlain returns the entry of a tool that has the fallback. prefersPlain says that a tool whose tasks
// are optional takes no tasks.
func offerPlain(entry json.RawMessage, prefersPlain bool) (json.RawMessage, error) {
	o := wire.NewObject(entry)
	var edits []wire.Edit
	offered := map[string]string{"required": "optional"}
	if prefersPlain {
		offered["optional"] = "forbidden"
	}
	if support, _ := o.Text("execution", "taskSupport"); offered[support] != "" {
		edits = append(edits, wire.Set(json.RawMessage(`"`+offered[support]+`"`), "execution", "taskSupport"))
	}
	if output := o.Get("outputSchema"); output != nil {
		wide, err := widen(output)
		if err != nil {
			return nil, err
		}
		edits = append(edits, wire.Set(wide, "outputSchema"))
	}
	return o.Edited(edits...)
}

// widen makes an output schema admit the structured content of a running task. Clients that check
// results (the TypeScript and Python SDKs) refuse structured content that does not fit the schema,
// and also a result without it. So the schema must tell them the truth.
//
// The tool's own schema stays whole, as one of two branches. Its references count from the root of
// the document, so they get the branch's path. Below an $id, which begins a document of its own,
// they stay.
func widen(schema json.RawMessage) (json.RawMessage, error) {
	var own map[string]any
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	if err := decoder.Decode(&own); err != nil {
		return nil, err
	}
	wide := map[string]any{"type": "object"}
	if dialect, ok := own["$schema"]; ok { // allowed at the root only
		wide["$schema"] = dialect
		delete(own, "$schema")
	}
	moveReferences(own)
	wide["anyOf"] = []any{own, json.RawMessage(stateSchema)}
	return json.Marshal(wide)
}

func moveReferences(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			moveReferences(item)
		}
	case map[string]any:
		if _, ok := node["$id"].(string); ok {
			return
		}
		for key, value := range node {
			reference, ok := value.(string)
			if ok && key == "$ref" && (reference == "#" || len(reference) > 1 && reference[:2] == "#/") {
				node[key] = "#/anyOf/0" + reference[1:]
				continue
			}
			moveReferences(value)
		}
	}
}
