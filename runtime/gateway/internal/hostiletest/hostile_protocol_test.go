package hostiletest

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// exchangeRaw sends bytes unchanged and reads one response, or returns nil if none comes.
func exchangeRaw(t *testing.T, url, sent string) (status int, body string) {
	t.Helper()
	conn := dial(t, url)
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(wiretest.Patience)); err != nil {
		t.Fatal(err)
	}
	// The server may answer and close the connection before it has read everything.
	go func() { _, _ = io.WriteString(conn, sent) }()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(data)
}

func chunked(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
	}
	return b.String() + "0\r\n\r\n"
}

// TestHostileHTTP sends requests that no client library sends. The server refuses each, or treats it as the request
// that it resembles.
func TestHostileHTTP(t *testing.T) {
	eachAttack(t, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		get, _ := mallory.Request("tasks/get", map[string]any{"taskId": a.done})
		named := []string{"Mcp-Method: tasks/get", "Mcp-Name: " + a.done}
		with := func(headers ...string) []string { return append(headers, named...) }
		te := with("Transfer-Encoding: chunked")
		big := strings.Repeat("x", 1<<20)
		refusal := []int{http.StatusOK, http.StatusBadRequest} // -32602, by revision
		for name, x := range map[string]struct {
			sent string
			want []int // 0 means no answer
		}{
			"as it should be":              {raw(mallory, "POST", "HTTP/1.1", get, named...), refusal},
			"HTTP/1.0":                     {raw(mallory, "POST", "HTTP/1.0", get, named...), refusal},
			"HTTP/1.0 and chunks":          {raw(mallory, "POST", "HTTP/1.0", chunked(get), te...), []int{0, 200, 400, 415, 501}},
			"HTTP/3.0":                     {raw(mallory, "POST", "HTTP/3.0", get, named...), []int{0, 400, 505}},
			"chunks":                       {raw(mallory, "POST", "HTTP/1.1", chunked(get[:5], get[5:6], get[6:]), te...), refusal},
			"chunks of one byte":           {raw(mallory, "POST", "HTTP/1.1", chunked(strings.Split(get, "")...), te...), refusal},
			"chunks with an extension":     {raw(mallory, "POST", "HTTP/1.1", fmt.Sprintf("%x;a=b\r\n%s\r\n0\r\nX-Trailer: y\r\n\r\n", len(get), get), te...), refusal},
			"a negative chunk":             {raw(mallory, "POST", "HTTP/1.1", "-5\r\n"+get, te...), []int{0, 400}},
			"a chunk too long":             {raw(mallory, "POST", "HTTP/1.1", "fffffffffffffffff\r\n"+get, te...), []int{0, 400}},
			"both lengths":                 {raw(mallory, "POST", "HTTP/1.1", chunked(get), append(te, fmt.Sprint("Content-Length: ", len(get)))...), []int{0, 200, 400}},
			"two lengths":                  {raw(mallory, "POST", "HTTP/1.1", get, with("Content-Length: 5", fmt.Sprint("Content-Length: ", len(get)))...), []int{0, 400}},
			"a length that is negative":    {raw(mallory, "POST", "HTTP/1.1", get, with("Content-Length: -1")...), []int{0, 400}},
			"a length beyond the limit":    {raw(mallory, "POST", "HTTP/1.1", strings.Repeat(" ", 5<<20), with("Content-Length: 99999999999")...), []int{0, 400, 413}},
			"a body too large, in chunks":  {raw(mallory, "POST", "HTTP/1.1", chunked(big, big, big, big, big), te...), []int{0, 413}},
			"a giant header":               {raw(mallory, "POST", "HTTP/1.1", get, with("X-Giant: "+big+big)...), []int{0, 431}},
			"a giant session ID":           {strings.Replace(raw(mallory, "POST", "HTTP/1.1", get, named...), "Host:", "Mcp-Session-Id: "+big[:1<<18]+"\r\nHost:", 1), []int{200, 400, 404}},
			"a giant version":              {strings.Replace(raw(mallory, "POST", "HTTP/1.1", get, named...), mallory.Revision+"\r\n", big[:1<<18]+"\r\n", 1), []int{400}},
			"a giant name":                 {raw(mallory, "POST", "HTTP/1.1", get, "Mcp-Method: tasks/get", "Mcp-Name: "+big[:1<<18]), refusal},
			"a header twice":               {raw(mallory, "POST", "HTTP/1.1", get, append(named, "Mcp-Name: other", "MCP-Protocol-Version: 2024-11-05")...), refusal},
			"control bytes in a header":    {raw(mallory, "POST", "HTTP/1.1", get, with("X-A: a\x00b")...), []int{0, 400}},
			"a header without a name":      {raw(mallory, "POST", "HTTP/1.1", get, with(": x")...), []int{0, 400}},
			"no Host":                      {strings.Replace(raw(mallory, "POST", "HTTP/1.1", get, named...), "Host: 127.0.0.1\r\n", "", 1), []int{0, 400}},
			"a compressed body":            {raw(mallory, "POST", "HTTP/1.1", "\x1f\x8b\x08\x00", with("Content-Encoding: gzip")...), []int{400, 415}},
			"a verb in small letters":      {raw(mallory, "post", "HTTP/1.1", get, named...), []int{400, 405}},
			"an unknown verb":              {raw(mallory, "BREW", "HTTP/1.1", get, named...), []int{400, 405}},
			"TRACE":                        {raw(mallory, "TRACE", "HTTP/1.1", "", named...), []int{400, 405}},
			"CONNECT":                      {strings.Replace(raw(mallory, "CONNECT", "HTTP/1.1", ""), "CONNECT /", "CONNECT 127.0.0.1:80", 1), []int{0, 400, 404, 405}},
			"an absolute URL":              {strings.Replace(raw(mallory, "POST", "HTTP/1.1", get, named...), "POST / ", "POST http://evil.example/ ", 1), []int{400, 403}},
			"another path":                 {strings.Replace(raw(mallory, "POST", "HTTP/1.1", get, named...), "POST / ", "POST /../../x?taskId=y ", 1), refusal},
			"an upgrade":                   {raw(mallory, "POST", "HTTP/1.1", get, with("Connection: Upgrade", "Upgrade: websocket")...), refusal},
			"100-continue":                 {raw(mallory, "POST", "HTTP/1.1", get, with("Expect: 100-continue")...), []int{100, 200, 400}},
			"an unknown expectation":       {raw(mallory, "POST", "HTTP/1.1", get, with("Expect: x")...), []int{417}},
			"a GET with a body":            {strings.Replace(raw(mallory, "GET", "HTTP/1.1", get, with(fmt.Sprint("Content-Length: ", len(get)))...), "Mcp-Session-Id: ", "Mcp-Session-Id: x", 1), []int{400, 404, 405}},
			"a DELETE of others' sessions": {strings.Replace(raw(mallory, "DELETE", "HTTP/1.1", ""), mallory.Session, a.victim.Session+"x", 1), []int{0, 204, 400, 404, 405}},
			"garbage":                      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + big[:100] + "\r\n\r\n", []int{0, 400}},
			"nothing":                      {"\r\n\r\n\r\n", []int{0, 400}},
		} {
			status, body := exchangeRaw(t, a.url, x.sent)
			if !slices.Contains(x.want, status) || strings.Contains(body, "goroutine ") || strings.Contains(body, `"result"`) {
				t.Errorf("%s: %d %.300s", name, status, body)
			}
		}
	})
}

// TestHostileAccept asks for answers with valid and invalid Accept headers.
func TestHostileAccept(t *testing.T) {
	eachAttack(t, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		for _, accept := range []string{"", "*/*", "application/*", "application/json", "text/event-stream", "text/html", "application/json;q=0",
			"text/event-stream;q=0.1, application/json;q=0", "APPLICATION/JSON, TEXT/EVENT-STREAM", ",,,", "\t", strings.Repeat("a/b,", 10000), "application/json, text/event-stream, text/event-stream"} {
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "tools/list", "tools/call"} {
				r := mallory.Call(method, map[string]any{"taskId": "NOSUCHTASK", "name": "ponder", "arguments": map[string]any{}, "task": 5},
					wiretest.WithHeader("Accept", accept), wiretest.WithHeader("Mcp-Name", map[bool]string{true: "ponder", false: "NOSUCHTASK"}[method == "tools/call"]))
				if r.Status >= 500 || r.Status == http.StatusOK && r.Result == nil && r.Error == nil {
					t.Errorf("%q %s: %d %.300s", accept, method, r.Status, r.Body)
				}
			}
		}
		for _, record := range a.records("mallory") { // in 2025-11-25, "task": 5 asks for no task; 2026-07-28 ignores it
			if a.revision == wiretest.LegacyRevision || record.Tool != "ponder" {
				t.Errorf("a task of %s", record.Tool)
			}
			a.tasksBefore++
		}
	})
}

// TestHostileValues sends values of the wrong type in a tool's arguments and in every param.
func TestHostileValues(t *testing.T) {
	eachAttack(t, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		deep := func(n int) json.RawMessage {
			return json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n))
		}
		values := []any{nil, true, -1, 0.5, "", "\x00", "\u2028", strings.Repeat("x", 1<<15), []any{}, map[string]any{}, map[string]any{"": ""},
			json.RawMessage("9007199254740993"), json.RawMessage("1e400"), json.RawMessage("-0"), json.RawMessage("1E-400"),
			json.RawMessage("123456789012345678901234567890"), deep(900), deep(9000), json.RawMessage(`"\ud800"`)}
		for _, value := range values {
			for _, params := range []map[string]any{
				{"name": "ponder", "arguments": map[string]any{"stubborn": value}}, {"name": "lint_file", "arguments": map[string]any{"path": value}},
				{"name": "ponder", "arguments": value}, {"name": value, "arguments": map[string]any{}},
				{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{"ttl": value}},
				{"name": "ponder", "arguments": map[string]any{}, "task": value},
				{"name": "ponder", "arguments": map[string]any{}, "inputResponses": value, "requestState": value},
				{"name": "ponder", "arguments": map[string]any{}, "_meta": map[string]any{"progressToken": value, "io.github.mcptaskgen/idempotency-key": value}},
			} {
				r := mallory.Post(jsonCall(t, mallory, "tools/call", params))
				if r.Status >= 500 {
					t.Errorf("%.100v: %d %.300s", params, r.Status, r.Body)
				}
			}
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "tasks/update", "tasks/list", "tools/list", "subscriptions/listen"} {
				if method == "subscriptions/listen" && a.revision == wiretest.ModernRevision {
					continue // may have no end; see the streams
				}
				r := mallory.Post(jsonCall(t, mallory, method, map[string]any{"taskId": value, "cursor": value, "inputResponses": value}))
				if r.Status >= 500 || r.Result != nil && method != "tasks/list" && method != "tools/list" {
					t.Errorf("%s %.100v: %d %.300s", method, value, r.Status, r.Body)
				}
			}
		}
		for _, record := range a.records("mallory") { // of the valid calls
			if record.Tool != "ponder" {
				t.Errorf("a task of %s", record.Tool)
			}
			mallory.Until(record.ID, "completed", "failed")
			a.tasksBefore++
		}
	})
}

// TestHTTP2 runs calls over HTTP/2, with questions on both kinds of stream, a stream that the
// client closes, and one that it does not read.
func TestHTTP2(t *testing.T) {
	var client *http.Client
	secured := wiretest.Setup{Start: func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.StartTLS()
		client = s.Client()
	}, Bearer: true, Tools: []mcptask.Tools{wiretest.AskTools()}}
	url, _ := wiretest.ServeWith(t, secured)
	t.Cleanup(client.CloseIdleConnections)
	over2 := func(revision string) *wiretest.Peer {
		p := &wiretest.Peer{T: t, URL: url, Revision: revision, Token: "a", Caps: wiretest.AllCapabilities, Client: client}
		if revision == wiretest.ModernRevision {
			p.Caps = strings.TrimSuffix(wiretest.AllCapabilities, "}") + `,"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		} else {
			p.Initialize()
		}
		res, err := client.Do(p.NewRequest(t.Context(), http.MethodOptions, ""))
		if err != nil || res.ProtoMajor != 2 {
			t.Fatalf("%v %v", res, err)
		}
		res.Body.Close()
		return p
	}
	t.Run(wiretest.LegacyRevision, func(t *testing.T) {
		p := over2(wiretest.LegacyRevision)
		get := p.OpenGet()
		id := p.Create("ask", wiretest.AskArguments("one", "two"))
		one := get.NextQuestion(id).ID
		f := p.Result(id) // the next question goes to this one
		p.Respond(one, wiretest.AcceptNote("1"))
		p.Respond(f.NextQuestion(id).ID, wiretest.AcceptNote("2"))
		if last := f.Next(); wiretest.ToolText(last.Result) != "1,2" {
			t.Errorf("%s", last.Text)
		}
		work := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		f = p.Result(work)
		f.WantSilence()
		f.Stop()
		p.Until(work, "working")
		p.Task("tasks/cancel", work).OK()
		get.Stop()
		wiretest.ClosePeer(t, p)
	})
	t.Run(wiretest.ModernRevision, func(t *testing.T) {
		p := over2(wiretest.ModernRevision)
		id := p.Create("ask", wiretest.AskArguments("one"))
		p.Until(id, "input_required")
		p.Call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"one": json.RawMessage(`{"action":"accept","content":{"note":"h2"}}`)}}).OK()
		if got := p.TaskText(id); got != "h2" {
			t.Error(got)
		}
		p.Task("tasks/get", "x").Want(http.StatusBadRequest, wiretest.InvalidParams)
		p.Task("tasks/get", "x", wiretest.WithHeader("Mcp-Name", "y")).Want(http.StatusBadRequest, wiretest.HeaderMismatch)
	})
	// A bad client hello does not stop the server.
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}); err == nil { //nolint:gosec // the certificate of a test
		_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\xff\xff\xff")
		_ = conn.Close()
	}
	over2(wiretest.ModernRevision).Call("tools/list", nil).OK()
}

// TestResumption uses an EventStore of the SDK. A resumed stream replays only the session's own events, unchanged, and
// no answer comes twice.
func TestResumption(t *testing.T) {
	setup := wiretest.Setup{HTTP: &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}}
	runAttack(t, wiretest.LegacyRevision, setup, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		// A plain call, whose client loses everything but the first event's ID.
		body, edits := a.victim.Request("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": wiretest.Secret}})
		res, err := a.victim.Client.Do(a.victim.NewRequest(t.Context(), http.MethodPost, body, edits...))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(data), wiretest.Secret) {
			t.Fatalf("%s %v", data, err)
		}
		var ids []string
		for line := range strings.Lines(string(data)) {
			if id, ok := strings.CutPrefix(line, "id:"); ok {
				ids = append(ids, strings.TrimSpace(id))
			}
		}
		if len(ids) == 0 {
			t.Fatalf("no event has an ID: %s", data)
		}
		replay := func(p *wiretest.Peer, session, last string) (int, string) {
			t.Helper()
			client := &http.Client{Transport: p.Client.Transport}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			res, err := client.Do(p.NewRequest(ctx, http.MethodGet, "", wiretest.WithHeader("Accept", "text/event-stream"), wiretest.WithHeader("Last-Event-ID", last), wiretest.WithHeader("Mcp-Session-Id", session)))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			time.AfterFunc(300*time.Millisecond, cancel)
			data, _ := io.ReadAll(res.Body) // until the time is over, if the stream stays open
			return res.StatusCode, string(data)
		}
		for _, id := range ids {
			status, text := replay(a.victim, a.victim.Session, id)
			if n := strings.Count(text, `"result"`); status != http.StatusOK || n > 1 || strings.Contains(text, "mcptask-flow") || strings.Contains(text, "io.github.mcptaskgen/flow") {
				t.Errorf("%s: %d, %d results: %s", id, status, n, text)
			}
			// Another caller, in a session of its own and in the victim's.
			if _, text := replay(mallory, mallory.Session, id); strings.Contains(text, wiretest.Secret) {
				t.Errorf("%s in another session: %s", id, text)
			}
			if status, text := replay(mallory, a.victim.Session, id); status != http.StatusForbidden || !strings.Contains(text, "initialize one of your own") {
				t.Errorf("%s by another caller: %d %s", id, status, text)
			}
		}
		for _, made := range []string{"_0", "x_0", "_999999", "_-1", "\"", strings.Repeat("x", 1<<16), "__", "_0_0"} {
			if status, text := replay(mallory, mallory.Session, made); status >= 500 || strings.Contains(text, wiretest.Secret) {
				t.Errorf("%q: %d %s", made, status, text)
			}
		}
		// The server asks a question on the open stream and does not replay it from an old one.
		get := mallory.OpenGet()
		id := mallory.Create("ask", wiretest.AskArguments("one"))
		a.tasksBefore++
		q := get.NextQuestion(id)
		get.Stop()
		for range 3 {
			if _, text := replay(mallory, mallory.Session, "_0"); strings.Count(text, string(q.ID)) > 1 {
				t.Errorf("twice on one stream: %s", text)
			}
		}
		mallory.Task("tasks/cancel", id).OK()
	})
}
