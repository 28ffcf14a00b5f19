package edgetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestLastReportOnPipes checks that a report of progress that is made right before the answer is left out on a pipe, and
// that one with some time before the answer, and one of another call, are sent.
func TestLastReportOnPipes(t *testing.T) {
	reporting := func(name string, pause time.Duration) mcptask.Tool {
		return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				task.Progress(ctx, 1, 1, name+" is done")
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
				return name, nil
			})
	}
	t.Parallel()
	for revision, meta := range map[string]string{wiretest.LegacyRevision: "", wiretest.ModernRevision: "," + strings.TrimSuffix(strings.TrimPrefix(modernMeta, `"_meta":{`), "}")} {
		bubble.Run(t, revision, func(t *testing.T) {
			p := wiretest.NewPiped(t, reporting("quick", 0), reporting("slow", time.Second))
			if revision == wiretest.LegacyRevision {
				p.Ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
				p.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			}
			meta := strings.Replace(meta, wiretest.TasksExtension, "{}", 1)
			call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"progressToken":%d` + meta + `}}}`
			for id := range 10 {
				if got := p.Ask(call, id+1, "quick", id+1); strings.Contains(got, "notifications/progress") {
					t.Fatalf("a report comes with its answer: %s", got)
				}
			}
			p.Say(call, 20, "slow", 20)
			if got := p.Hear(); !strings.Contains(got, "slow is done") || !strings.Contains(got, `"progressToken":20`) {
				t.Errorf("%s, want a report", got)
			}
			if got := p.Hear(); !strings.Contains(got, `"id":20`) {
				t.Errorf("%s, want the answer", got)
			}
			p.Say(call, 21, "slow", 21) // its report may be held when the answer to the next call comes
			if got := p.Ask(call, 22, "quick", 22) + p.Hear(); !strings.Contains(got, `"progressToken":21`) || !strings.Contains(got, `"id":22`) {
				t.Errorf("%s, want the report of the other call", got)
			}
			p.Stop()
		})
	}
}

// TestFirstReportOfTaskOnPipes checks that a report which a task makes before the client knows of the task is not lost.
func TestFirstReportOfTaskOnPipes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := wiretest.NewPiped(t, mcptask.NewTool(mcptask.ToolSpec{Name: "early", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				task.Progress(ctx, 1, 3, "it has begun")
				<-ctx.Done()
				return "", ctx.Err()
			}))
		p.Initialize()
		for id := range 20 {
			got := p.Ask(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"early","arguments":{},"task":{},"_meta":{"progressToken":%d}}}`, id+1, id+1)
			got += p.Hear() + p.Hear() // in any order: the task, its status, and the report
			if !strings.Contains(got, `"taskId"`) || !strings.Contains(got, fmt.Sprintf(`"progressToken":%d,`, id+1)) {
				t.Fatalf("%s, want a report", got)
			}
		}
		p.Stop()
	})
}
