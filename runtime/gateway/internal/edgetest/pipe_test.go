package edgetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestPipeBadLines sends bad lines. Each is answered or ignored, and the next line is served.
func TestPipeBadLines(t *testing.T) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
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
		"response to nobody":   {`{"jsonrpc":"2.0","id":99,"result":{}}`, ""},
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
		"future, list":         {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, "2027-01-01"), "error"},
		"future, call":         {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless","arguments":{},`+meta+`}}`, "2027-01-01"), "-32022"},
		"future, task":         {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",`+meta+`}}`, "2027-01-01"), "-32022"},
		"future, ping":         {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{`+meta+`}}`, "2027-01-01"), "error"},
		"future, discover":     {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`, "2027-01-01"), "error"},
		"version of a session": {fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",`+meta+`}}`, "2025-11-25"), "-32022"},
		"version a number":     {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}}`, `"id":1`},
		"initialize twice":     {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, `"id":1`},
		"initialize null":      {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":null}`, `"id":1`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := wiretest.NewPiped(t)
				p.Initialize()
				p.Say("%s", test.line)
				p.Say(`{"jsonrpc":"2.0","id":"after","method":"tasks/list"}`)
				p.Say(`{"jsonrpc":"2.0","id":"last","method":"tools/list"}`)
				// Replies come in any order; one that never comes ends in hear.
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
		})
	}
}

// TestPipeEndsWithSDK checks that the end of the SDK's output ends waiting requests, even if the
// client's input stays open.
func TestPipeEndsWithSDK(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		before := leak.Now()
		p := wiretest.NewPiped(t)
		p.Initialize()
		id := p.StartEndless()
		for i := range 1000 {
			p.Say(`{"jsonrpc":"2.0","id":%d,"method":"tasks/result","params":{"taskId":%q}}`, i, id)
		}
		p.Stop()
		p.WantEnd()
		before.AtMost(t, 8) // the readers of what stays open, and the task's own
	})
}

// TestPipeEndsWithClient checks that the end of the client's input ends a thousand waiting
// requests.
func TestPipeEndsWithClient(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := wiretest.NewPiped(t)
		p.Initialize()
		id := p.StartEndless()
		for i := range 1000 {
			p.Say(`{"jsonrpc":"2.0","id":%d,"method":"tasks/result","params":{"taskId":%q}}`, i, id)
		}
		if err := p.In.Close(); err != nil {
			t.Fatal(err)
		}
		p.WantEnd()
	})
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
		written := make(chan struct{})
		go func() {
			defer close(written)
			for i := range 300 { // more than the client's end holds
				if _, err := fmt.Fprintf(p.In, `{"jsonrpc":"2.0","id":%d,"method":"tasks/list"}`+"\n", 100+i); err != nil {
					return
				}
			}
		}()
		select {
		case <-written:
		case <-time.After(wiretest.Patience):
			t.Fatal("the reading waits for the writing")
		}
		_ = p.In.Close()
		p.WantEnd()
	})
}
