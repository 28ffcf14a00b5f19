package edgetest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestPipeLimits checks that the limits hold on a pipe as they do over HTTP.
func TestPipeLimits(t *testing.T) {
	rules.Covers(t, "C-95", "E-26")
	bubble.Test(t, pipeLimits)
}

func pipeLimits(t *testing.T) {
	p := wiretest.NewPipedWith(t, mcptask.Options{MaxBody: wiretest.PipeLimit, Limits: mcptask.Limits{Polls: 1, Lists: 1, Running: 2, Waiting: 1, Arguments: 1000}})
	p.Initialize()
	id := p.StartEndless()
	refused := func(format string, args ...any) (limit string) {
		t.Helper()
		for range 20 {
			if line := p.Ask(format, args...); strings.Contains(line, `"code":-32603`) {
				_, limit, _ = strings.Cut(line, `"limit":"`)
				limit, _, _ = strings.Cut(limit, `"`)
				return limit
			}
		}
		return ""
	}
	for format, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"` + id + `"}}`:                                        "polls",
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"made-up",` + modernMeta + `}}`:                        "polls",
		`{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`:                                                                        "lists",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","arguments":{},"task":{}}}`:                   "running",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","arguments":{},` + modernMeta + `}}`:          "running",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","arguments":{"x":"` + long + `"},"task":{}}}`: "arguments",
	} {
		if got := refused("%s", format); got != want {
			t.Errorf("%.120s: %q, want %q", format, got, want)
		}
	}
	time.Sleep(2 * time.Second) // the task may be polled again
	p.Say(`{"jsonrpc":"2.0","id":"waits","method":"tasks/result","params":{"taskId":%q}}`, id)
	synctest.Wait()
	if line := p.Ask(`{"jsonrpc":"2.0","id":"too","method":"tasks/result","params":{"taskId":%q}}`, id); !strings.Contains(line, `"limit":"waiting"`) || !strings.Contains(line, `"too"`) {
		t.Error(line)
	}
	time.Sleep(time.Second)
	p.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0077aits"}}`) // the same ID, written another way
	time.Sleep(time.Second)                                                                           // there is no answer to it
	p.Say(`{"jsonrpc":"2.0","id":"again","method":"tasks/result","params":{"taskId":%q}}`, id)
	synctest.Wait()
	select {
	case line := <-p.Lines:
		t.Errorf("the one that was cancelled still waits: %s", line)
	default:
	}
	if line := p.Ask(`{"jsonrpc":"2.0","id":"long","method":"%s"}`, strings.Repeat("x", wiretest.PipeLimit)); !strings.Contains(line, fmt.Sprint(wiretest.PipeLimit)) {
		t.Error(line)
	}
}

var long = strings.Repeat("x", 1001)

// TestPipeNested checks that a line which nests deeper than the SDK reads is refused, because the
// SDK would end the session.
func TestPipeNested(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := wiretest.NewPipedWith(t, mcptask.Options{})
		p.Initialize()
		nest := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
		for levels, want := range map[int]string{1000: `"id":"deep"`, 1001: "more than 1000", 9000: "more than 1000"} {
			for _, format := range []string{
				`{"jsonrpc":"2.0","id":"deep","method":"ping","params":{"x":%s}}`,
				`{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{"name":%s}}`,
				`{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{"name":"endless","arguments":%s,` + modernMeta + `}}`,
			} {
				if line := p.Ask(format, nest(levels-2)); !strings.Contains(line, want) { // in the message and its params
					t.Errorf("%d levels: %.300s", levels, line)
				}
			}
		}
		p.Say(`{"jsonrpc":"2.0","id":"nobody's","result":{"x":%s}}`, nest(5000))
		if line := p.Ask(`{"jsonrpc":"2.0","id":"alive","method":"ping"}`); !strings.Contains(line, `"alive"`) {
			t.Error(line)
		}
	})
}
