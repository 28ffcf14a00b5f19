package edgetest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestPipeBadLines sends bad lines. Each is answered or ignored, and the next line is served.
func TestPipeBadLines(t *testing.T) {
	future := strings.Replace(modernMeta, wiretest.ModernRevision, "2027-01-01", 1)
	session := strings.Replace(modernMeta, wiretest.ModernRevision, wiretest.LegacyRevision, 1)
	for name, test := range map[string]struct{ line, want string }{
		"params null":          {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}`, `"id":1`},
		"call params null":     {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, `"id":1`},
		"meta null":            {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":null}}`, `"id":1`},
		"call meta null":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","arguments":{},"task":{},"_meta":null}}`, `"taskId"`},
		"params a list":        {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, `"error"`},
		"meta a list":          {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":[]}}`, `"error"`},
		"too long":             {`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 5000) + `"}`, "exceeds"},
		"not UTF-8":            {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "-32700"},
		"batch":                {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "batches"},
		"empty batch":          {`[]`, "batches"},
		"key twice":            {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "twice"},
		"id null":              {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "-32600"},
		"id float":             {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "-32600"},
		"id huge":              {`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}`, "-32600"},
		"id huge, call":        {`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"tools/list"}`, "-32600"},
		"id huge, ours":        {`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"tasks/list"}`, "-32600"},
		"id of 53 bits":        {`{"jsonrpc":"2.0","id":9007199254740991,"method":"tools/list"}`, `"id":9007199254740991`},
		"id of 54 bits":        {`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}`, "-32600"},
		"id below":             {`{"jsonrpc":"2.0","id":-9007199254740993,"method":"tools/list"}`, "-32600"},
		"id object":            {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "-32600"},
		"nothing":              {`{"jsonrpc":"2.0"}`, ""},
		"response, id null":    {`{"jsonrpc":"2.0","id":null,"result":{}}`, ""},
		"response, id float":   {`{"jsonrpc":"2.0","id":1.5,"result":{}}`, ""},
		"response, id huge":    {`{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{}}`, ""},
		"response, id object":  {`{"jsonrpc":"2.0","id":{},"result":{}}`, ""},
		"response, none":       {`{"jsonrpc":"2.0","id":1}`, ""},
		"response, both":       {`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`, ""},
		"response, no id":      {`{"jsonrpc":"2.0","result":{}}`, ""},
		"response, unasked":    {`{"jsonrpc":"2.0","id":99,"result":{}}`, ""},
		"error a string":       {`{"jsonrpc":"2.0","id":1,"error":"x"}`, ""},
		"method empty":         {`{"jsonrpc":"2.0","id":1,"method":""}`, ""},
		"method and result":    {`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, ""},
		"unknown note":         {`{"jsonrpc":"2.0","method":"x/y","params":[]}`, ""},
		"cancelled junk":       {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, ""},
		"cancelled none":       {`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, ""},
		"cancelled float":      {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.5}}`, ""},
		"extra member":         {`{"jsonrpc":"2.0","id":1,"method":"ping","x":1}`, `"id":1`},
		"CRLF":                 {`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\r", `"id":1`},
		"empty lines":          {"\n\r\n  \t", ""},
		"number":               {`1`, "error"},
		"two on a line":        {`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, "-32700"},
		"future, list":         {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + future + `}}`, "error"},
		"future, call":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","arguments":{},` + future + `}}`, "-32022"},
		"future, task":         {`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",` + future + `}}`, "-32022"},
		"future, ping":         {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + future + `}}`, "error"},
		"future, discover":     {`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + future + `}}`, "error"},
		"version of a session": {`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",` + session + `}}`, "-32022"},
		"version a number":     {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}}`, `"id":1`},
		"initialize twice":     {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, `"id":1`},
		"initialize null":      {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":null}`, `"id":1`},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := wiretest.NewPiped(t)
			p.Initialize()
			p.Say("%s", test.line)
			p.Say(`{"jsonrpc":"2.0","id":"after","method":"tasks/list"}`)
			p.Say(`{"jsonrpc":"2.0","id":"last","method":"tools/list"}`)
			// The replies come in any order. If a reply never comes, hear fails.
			var heard string
			for missing := 2; missing > 0 || !strings.Contains(heard, test.want); {
				line := p.Hear()
				if strings.Contains(line, `"id":"after"`) || strings.Contains(line, `"id":"last"`) {
					missing--
				}
				heard += line + "\n"
			}
			if testing.Verbose() {
				t.Logf("%.300s", heard)
			}
		})
	}
}

// TestPipeEnds checks that the end of the SDK's output, and the end of the client's input, each end a
// thousand waiting requests, even if the other side stays open.
func TestPipeEnds(t *testing.T) {
	for name, end := range map[string]func(p *wiretest.Piped){
		"with the SDK":    func(p *wiretest.Piped) { p.Stop() },
		"with the client": func(p *wiretest.Piped) { _ = p.In.Close() },
	} {
		bubble.Run(t, name, func(t *testing.T) {
			before := leak.Now()
			p := wiretest.NewPiped(t)
			p.Initialize()
			id := p.StartEndless()
			for i := range 1000 {
				p.Say(`{"jsonrpc":"2.0","id":%d,"method":"tasks/result","params":{"taskId":%q}}`, i, id)
			}
			end(p)
			p.WantEnd()
			before.AtMost(t, 8) // the readers of the open side, and the task's own
		})
	}
}

// TestPipeLongLineAtEnd checks that a line which is too long is reported as such, even at the end
// of the input.
func TestPipeLongLineAtEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := wiretest.NewPiped(t)
		p.Initialize()
		if _, err := fmt.Fprint(p.In, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, strings.Repeat(" ", 2*wiretest.PipeLimit)); err != nil {
			t.Fatal(err)
		}
		if err := p.In.Close(); err != nil {
			t.Fatal(err)
		}
		if line := p.Hear(); !strings.Contains(line, "exceeds") {
			t.Error(line)
		}
		p.WantEnd()
	})
}

// TestPipeOfAClientThatNeverReads checks that a pipe ends with its input even if the client never
// reads.
func TestPipeOfAClientThatNeverReads(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := wiretest.NewPiped(t)
		p.Initialize()
		for i := range 300 { // more than the client's end holds
			p.Say(`{"jsonrpc":"2.0","id":%d,"method":"tasks/list"}`, 100+i) // returns when the SDK has read the line
		}
		_ = p.In.Close()
		p.WantEnd()
	})
}

// TestPipeLimits checks that the limits hold on a pipe as they do over HTTP.
func TestPipeLimits(t *testing.T) {
	rules.Covers(t, "C-95", "E-26")
	bubble.Test(t, func(t *testing.T) {
		p := wiretest.NewPipedWith(t, taskserver.Options{MaxBody: wiretest.PipeLimit, Limits: taskserver.Limits{Polls: 1, Lists: 1, Running: 2, Waiting: 1, Arguments: 1000}})
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
			`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"` + id + `"}}`:                                                             "polls",
			`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"made-up",` + modernMeta + `}}`:                                             "polls",
			`{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`:                                                                                             "lists",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","arguments":{},"task":{}}}`:                                        "running",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","arguments":{},` + modernMeta + `}}`:                               "running",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","arguments":{"x":"` + strings.Repeat("x", 1001) + `"},"task":{}}}`: "arguments",
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
		p.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0077aits"}}`) // the same ID in another form
		time.Sleep(time.Second)                                                                           // it gets no answer
		p.Say(`{"jsonrpc":"2.0","id":"again","method":"tasks/result","params":{"taskId":%q}}`, id)
		synctest.Wait()
		select {
		case line := <-p.Lines:
			t.Errorf("the cancelled request still waits: %s", line)
		default:
		}
		if line := p.Ask(`{"jsonrpc":"2.0","id":"long","method":"%s"}`, strings.Repeat("x", wiretest.PipeLimit)); !strings.Contains(line, fmt.Sprint(wiretest.PipeLimit)) {
			t.Error(line)
		}
	})
}

// TestPipeNested checks that a line which nests deeper than the SDK reads is refused, because the
// SDK would end the session.
func TestPipeNested(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := wiretest.NewPipedWith(t, taskserver.Options{})
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
