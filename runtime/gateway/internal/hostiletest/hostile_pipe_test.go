package hostiletest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// overPipe is a client of a server whose store has another caller's task.
type overPipe struct {
	*wiretest.Piped
	tasks  *taskserver.Server
	store  taskstore.Store
	victim string
}

func newOverPipe(t *testing.T) *overPipe {
	t.Helper()
	p := &overPipe{store: taskstore.NewMemory()}
	var err error
	if p.tasks, err = taskserver.New(taskserver.Options{Store: p.store, Logger: slog.New(slog.DiscardHandler)}, wiretest.SecretTools(), wiretest.AskTools(), wiretest.ExtraTools()); err != nil {
		t.Fatal(err)
	}
	reply, err := p.tasks.Backend().Call(t.Context(), taskserver.Caller{Principal: "victim", Revision: wiretest.LegacyRevision, CanAsk: []string{"elicitation/create"}}, "secret_ask",
		json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		t.Fatal(err)
	}
	p.victim = reply.Task.ID
	p.Piped = wiretest.PipeTo(t, p.tasks, 1<<14)
	return p
}

// reply reads until the response with an ID comes.
func (p *overPipe) reply(id string) string {
	p.T.Helper()
	for {
		select {
		case line, ok := <-p.Lines:
			if !ok {
				p.T.Fatal("no more lines")
			}
			if strings.Contains(line, wiretest.Secret) {
				p.T.Errorf("the victim's data leaked: %s", line)
			}
			if strings.Contains(line, `"id":"`+id+`"`) {
				return line
			}
		case <-time.After(wiretest.Patience):
			p.T.Fatalf("no reply to %s", id)
		}
	}
}

// close ends the input, and waits for the end of the server.
func (p *overPipe) close() {
	p.T.Helper()
	_ = p.In.Close()
	for line := range p.Lines {
		if strings.Contains(line, wiretest.Secret) {
			p.T.Errorf("the victim's data leaked: %s", line)
		}
	}
	p.WantEnd()
	if r, err := p.tasks.Backend().Peek(p.victim); err != nil || r.Done() || r.CancelRequested {
		p.T.Errorf("the victim's task: %+v %v", r, err)
	}
	if c := gateway.New(gateway.Config{Server: p.tasks.Backend()}).Counts(); c != (gateway.Counts{}) {
		p.T.Errorf("left behind: %+v", c)
	}
	if err := p.tasks.Close(); err != nil {
		p.T.Error(err)
	}
	_ = p.store.Close()
}

// TestHostilePipe repeats the attacks over pipes.
func TestHostilePipe(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		check := wiretest.Goroutines(t)
		p := newOverPipe(t)
		meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":%s,"io.github.mcptaskgen/flow":"AAAAAAAAAAAAAAAAAAAAAAAAAA","io.modelcontextprotocol/related-task":{"taskId":%q}}`, wiretest.WithQuestions, p.victim)
		p.Say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
		p.reply("i")
		p.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		// Another caller's task, by every method, in both revisions, and as an answer.
		for _, params := range []string{fmt.Sprintf(`{"taskId":%q,"inputResponses":{"step":{"action":"decline"}},%s}`, p.victim, meta), fmt.Sprintf(`{"taskId":%q,"_meta":{"io.github.mcptaskgen/flow":"x"}}`, p.victim)} {
			for i, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "tasks/update"} {
				id := fmt.Sprint("w", i)
				p.Say(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, params)
				if line := p.reply(id); !strings.Contains(line, `-32602`) && !strings.Contains(line, `-32601`) {
					t.Errorf("%s: %s", method, line)
				}
			}
		}
		for _, key := range []string{"step", "", "step#2", "../step", "/"} {
			p.Say(`{"jsonrpc":"2.0","id":"mcptask/%s/%s","result":{"action":"decline"}}`, p.victim, key)
			p.Say(`{"jsonrpc":"2.0","id":"mcptask/%s/%s","error":{"code":1,"message":"m"}}`, p.victim, key)
		}
		p.Say(`{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{"notifications":{"taskIds":[%q]},%s}}`, p.victim, meta)
		p.Say(`{"jsonrpc":"2.0","id":"list","method":"tasks/list"}`)
		if line := p.reply("list"); !strings.Contains(line, `"tasks":[]`) {
			t.Errorf("%s", line)
		}
		// A flood, of which most requests are refused, some by the SDK itself.
		for i := range 500 {
			p.Say(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"ponder","arguments":{"ms":0},"task":{}}}`, i)
			p.Say(`{"jsonrpc":"2.0","id":"x%d","method":"tools/call","params":{"name":"ponder","arguments":[],"task":{}}}`, i)
			p.Say(`{"jsonrpc":"2.0","id":"y%d","method":"tools/list","params":{"cursor":5}}`, i)
			p.Say(`{"jsonrpc":"2.0","id":"z%d","method":"tasks/get","params":{"taskId":%q}}`, i, p.victim)
			p.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c%d"}}`, i)
		}
		p.Say(`{"jsonrpc":"2.0","id":"last","method":"tools/list"}`)
		p.reply("last")
		p.close()
		check()
	})
}
