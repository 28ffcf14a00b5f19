package officialtest

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestModernRelatedTasks checks that a call which names related tasks, as the draft of the extension has it, gets the answer
// of any other call, which reveals nothing of these tasks.
func TestModernRelatedTasks(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
		p, another := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a"), wiretest.NewPeer(t, url, wiretest.ModernRevision, "b")
		own := p.Create("run_pipeline", wiretest.PipelineArgs("main", "build"))
		foreign := another.Create("run_pipeline", wiretest.PipelineArgs("main", "build"))
		call := func(tool string, arguments map[string]any, related any) *wiretest.Response {
			params := map[string]any{"name": tool, "arguments": arguments}
			if related != nil {
				params["_meta"] = map[string]any{"io.modelcontextprotocol/relatedTaskIds": related}
			}
			return p.Call("tools/call", params).OK()
		}
		plain := string(call("lint_file", map[string]any{"path": "p"}, nil).Result)
		for name, related := range map[string]any{
			"own": []string{own}, "another's": []string{foreign}, "unknown": []string{"no-such-task"}, "several": []string{own, own, foreign, ""},
			"none": []string{}, "a string": own, "a number": 7, "an object": map[string]any{"taskId": own}, "objects": []any{map[string]any{}, nil, 1},
		} {
			if got := string(call("lint_file", map[string]any{"path": "p"}, related).Result); got != plain {
				t.Errorf("%s: %s\nwithout %s", name, got, plain)
			}
			r := call("run_pipeline", wiretest.PipelineArgs("main", "build"), related).WantMembers(`{"resultType":"task","status":"working"}`)
			if id := r.Text("taskId"); id == own || id == foreign {
				t.Errorf("%s: the call got the task %s", name, id)
			}
		}
	})
}
