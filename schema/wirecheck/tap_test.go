package wirecheck

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	legacyList = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	legacyGet  = `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t"}}`
	modernCall = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	modernTask = `{"jsonrpc":"2.0","id":"a","result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"resultType":"task","taskId":"t","status":"working","ttlMs":1,"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"}}`
	listen     = `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	progress   = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
)

func event(data string) string { return "event: message\ndata: " + data + "\n\n" }

// TestTap checks that the tap reports the faults that it should find, and no others.
func TestTap(t *testing.T) {
	for name, test := range map[string]struct {
		request, media, response string
		status                   int
		want                     string // part of the fault, or "" for none
	}{
		"a list":                 {legacyList, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, 200, ""},
		"a task with an error":   {legacyGet, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"taskId":"t"}}`, 200, "does not fit"},
		"another ID":             {legacyList, "application/json", `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`, 200, "without a request"},
		"an ID of another type":  {legacyList, "application/json", `{"jsonrpc":"2.0","id":"1","result":{"tools":[]}}`, 200, "without a request"},
		"the ID null":            {`x`, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, 400, "without a request"},
		"no ID":                  {`x`, "application/json", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}`, 400, ""},
		"a result that fails":    {legacyList, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, 400, "a result with this status"},
		"no answer":              {legacyList, "", ``, 202, "gets no answer"},
		"a notification":         {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", ``, 202, ""},
		"a page":                 {legacyList, "text/html", `<p>`, 200, "a body of the type"},
		"text":                   {legacyList, "text/plain; charset=utf-8", `oops`, 400, "unknown plain text"},
		"an unasked task":        {modernCall, "application/json", modernTask, 200, "did not declare support"},
		"no server's name":       {modernCall, "application/json", `{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","content":[]}}`, 200, "without the server's name"},
		"an asked task":          {strings.Replace(modernCall, `Capabilities":{}`, `Capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1), "application/json", modernTask, 200, ""},
		"the status of 2025":     {modernCall, "application/json", `{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"m"}}`, 200, "belongs to HTTP 400"},
		"the status of 2026":     {modernCall, "application/json", `{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"m"}}`, 400, ""},
		"a stream":               {legacyList, "text/event-stream", ": open\n\n" + event(progress) + event(`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`), 200, ""},
		"a stream of junk":       {legacyList, "text/event-stream", event(`{"jsonrpc":"2.0","method":"no/such"}`), 200, "unexpected message"},
		"a bad notification":     {legacyList, "text/event-stream", event(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{}}`), 200, "does not fit"},
		"a cut event":            {legacyList, "text/event-stream", event(progress) + "data: {", 200, "incomplete event"},
		"progress to a listener": {listen, "text/event-stream", event(progress), 200, "gets a message of"},
		"a late acknowledgement": {listen, "text/event-stream", event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`), 200, "acknowledged exactly once"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := sharedChecker()
			if err != nil {
				t.Fatal(err)
			}
			tap := &httpTap{checker: c, legacy: Legacy, sessions: map[string]map[string]*pendingRequest{}}
			tap.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				w.Header().Set("Content-Type", test.media)
				w.WriteHeader(test.status)
				for _, b := range []byte(test.response) { // however it is cut
					_, _ = w.Write([]byte{b})
				}
			})
			tap.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.request)))
			if text := tap.String(); (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("the fault is %q, want %q", text, test.want)
			}
		})
	}
}

// TestTapIsTransparent checks that everything that a server does with a response also works through the tap.
func TestTapIsTransparent(t *testing.T) {
	step := make(chan struct{})
	server := httptest.NewServer(Handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if _, ok := w.(http.Flusher); !ok {
			t.Error("no Flusher")
		}
		for _, err := range []error{control.SetReadDeadline(time.Now().Add(time.Hour)), control.SetWriteDeadline(time.Now().Add(time.Hour)), control.EnableFullDuplex()} {
			if err != nil {
				t.Error(err)
			}
		}
		if r.Method == http.MethodDelete {
			conn, _, err := control.Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, event(progress))
		_ = control.Flush()
		<-step
	})))
	t.Cleanup(server.Close)
	do := func(method string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		return server.Client().Do(r)
	}
	res, err := do(http.MethodGet)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, len(event(progress))) // it comes while the handler goes on
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != event(progress) {
		t.Errorf("%q, %v", first, err)
	}
	close(step)
	if res, err := do(http.MethodDelete); err == nil {
		res.Body.Close()
		t.Error("a hijacked connection answers")
	}
}

// TestPipeTap is TestTap for pipes.
func TestPipeTap(t *testing.T) {
	for name, test := range map[string]struct{ said, spoken, want string }{
		"a list":           {legacyList + "\n", `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}` + "\n", ""},
		"a bad task":       {legacyGet + "\n", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", "does not fit"},
		"answered twice":   {legacyList + "\n", strings.Repeat(`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`+"\n", 2), "without a request"},
		"no JSON":          {legacyList + "\n", "hello\n", "not a message"},
		"no subscription":  {legacyList + "\n", `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":9}}}` + "\n", "unknown subscription"},
		"an unasked task":  {modernCall + "\n", modernTask + "\n", "did not declare support"},
		"without a break":  {legacyList, `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}` + "\n", ""},
		"a notification":   {"", progress + "\n", ""},
		"two on two lines": {legacyList + "\n" + modernCall + "\n", `{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m"}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}` + "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantFault(t, test.said, test.spoken, test.want)
		})
	}
}

// wantFault fails the test unless the tap of two pipes finds the fault in a server's output, after the input from its
// client. "" means no fault.
func wantFault(t *testing.T, said, spoken, want string) {
	t.Helper()
	in, out, faults, err := Process(Legacy, strings.NewReader(said), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if heard, err := io.ReadAll(in); err != nil || string(heard) != said {
		t.Errorf("%q, %v", heard, err)
	}
	for _, b := range []byte(spoken) { // however it is cut
		if _, err := out.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if text := faults(); (text == "") != (want == "") || !strings.Contains(text, want) {
		t.Errorf("the fault is %q, want %q", text, want)
	}
}
