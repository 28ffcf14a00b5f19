package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// later is an invented revision that calls some of 2026-07-28 otherwise.
func later() *dialect.Translation {
	meta := &dialect.Shape{Members: map[string]*dialect.Shape{
		mcptask.MetaProtocolVersion: {Values: map[string]string{mcptask.Revision20260728: "2027-03-01"}},
	}}
	return dialect.NewTranslation(dialect.Renaming{
		Revision: "2027-03-01", Protocol: "2027-03-01", Base: mcptask.Revision20260728, BaseProtocol: mcptask.Revision20260728,
		VersionKey: mcptask.MetaProtocolVersion,
		Methods:    map[string]string{"tasks/update": "tasks/answer", "prompts/list": "prompts/all"},
		Request:    &dialect.Shape{Members: map[string]*dialect.Shape{"_meta": meta}},
		Notice:     &dialect.Shape{Names: map[string]string{"old": "new"}},
		Result:     &dialect.Shape{Names: map[string]string{"resultType": "kind", "old": "new"}},
		Failure: &dialect.Shape{By: "code", Members: map[string]*dialect.Shape{
			"code": {Values: map[string]string{"-32020": "-32050", "-32021": "-32051"}},
		}},
	})
}

// translating is a gateway that speaks it, in front of an SDK that answers as the
// request's header Sdk says.
func translating(t *testing.T) *Gateway {
	t.Helper()
	server, err := mcptask.NewServer(mcptask.Options{Principal: func(context.Context) (string, error) { return "somebody", nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	sdk := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, text, _ := strings.Cut(r.Header.Get("Sdk"), " ")
		w.Header().Set("Content-Type", kind)
		if kind == "echo" {
			w.Header().Set("Content-Type", "text/plain")
			body, _ := io.ReadAll(r.Body)
			text = fmt.Sprintf("%s %s %d %s", r.Header.Get(versionHeader), r.Header.Get(methodHeader), r.ContentLength-int64(len(body)), body)
		}
		for part := range strings.SplitSeq(text, "|") { // written by and by
			_, _ = io.WriteString(w, strings.ReplaceAll(part, `\n`, "\n"))
			_ = http.NewResponseController(w).Flush()
		}
	})
	g := New(Config{Server: server, Stateless: sdk, Stateful: sdk})
	g.translations = []*dialect.Translation{later()}
	return g
}

// ask posts a message and returns the answer.
func ask(g *Gateway, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func asks(version, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{%q:%q,%q:{}}}}`, method, mcptask.MetaProtocolVersion, version, mcptask.MetaClientCapabilities)
}

// TestTranslatedHTTP: what comes in has the base's names for the SDK, what goes out
// the revision's, in each form that an answer has.
func TestTranslatedHTTP(t *testing.T) {
	t.Parallel()
	const own, base = "2027-03-01", mcptask.Revision20260728
	g := translating(t)
	message := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","old":1}}`
	renamed := `{"jsonrpc":"2.0","id":1,"result":{"kind":"complete","new":1}}`
	for name, test := range map[string]struct {
		body, version, method, sdk string
		status                     int
		want                       string
	}{
		"in":             {asks(own, "prompts/all"), own, "prompts/all", "echo", 200, base + " prompts/list 0 " + asks(base, "prompts/list")},
		"as it is":       {asks(base, "prompts/list"), base, "prompts/list", "echo", 200, base + " prompts/list 0 " + asks(base, "prompts/list")},
		"not its name":   {asks(own, "prompts/list"), own, "prompts/list", "echo", 200, base + " prompts/all 0 " + asks(base, "prompts/all")},
		"a note":         {`{"jsonrpc":"2.0","method":"notifications/x","params":{"new":1}}`, own, "", "echo", 200, base + `  0 {"jsonrpc":"2.0","method":"notifications/x","params":{"old":1}}`},
		"JSON":           {asks(own, "x"), own, "x", "application/json " + message, 200, renamed},
		"JSON in parts":  {asks(own, "x"), own, "x", "application/json;charset=utf-8 " + message[:9] + "|" + message[9:], 200, renamed},
		"JSON of others": {asks(base, "x"), base, "x", "application/json " + message, 200, message},
		"a stream": {asks(own, "x"), own, "x", `text/event-stream : open\n\nevent: message\nid: 1\nda|ta: {"jsonrpc":"2.0","method":"m","params":{"old":2}}\n|\ndata:\n\ndata: ` + message + `\n\n`, 200,
			": open\n\nevent: message\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"new\":2}}\n\ndata:\n\ndata: " + renamed + "\n\n"},
		"text":                {asks(own, "x"), own, "x", "text/plain resultType", 200, "resultType"},
		"the body of another": {asks(base, "tasks/get"), own, "tasks/get", "", 400, `"code":-32050,"message":"the MCP-Protocol-Version header is \"2027-03-01\", the body says \"2026-07-28\""`},
		"a header of another": {asks(own, "tasks/get"), base, "tasks/get", "", 400, `"code":-32050`},
		"no header":           {asks(own, "tasks/get"), "", "", "", 400, `"code":-32050`},
		"a method that moved": {asks(own, "tasks/update"), own, "tasks/update", "", 404, "the method tasks/update does not exist in 2027-03-01"},
		"no capability":       {asks(own, "tasks/get"), own, "tasks/get", "", 400, `"code":-32051`},
		"no capability there": {asks(base, "tasks/get"), base, "tasks/get", "", 400, `"code":-32021`},
		"an unknown version":  {asks("2099-01-01", "x"), "2099-01-01", "x", "", 400, `"supported":["2026-07-28","2025-11-25","2027-03-01"]`},
		"no _meta":            {`{"jsonrpc":"2.0","id":1,"method":"tasks/get"}`, own, "tasks/get", "", 400, `"code":-32602`},
		"twice":               {strings.Replace(asks(own, "tasks/get"), `"_meta"`, `"_meta":1,"_meta"`, 1), own, "", "", 400, `ambiguous`},
	} {
		w := ask(g, test.body, versionHeader, test.version, methodHeader, test.method, "Sdk", test.sdk)
		if got := w.Body.String(); w.Code != test.status || got != test.want && (test.sdk != "" || !strings.Contains(got, test.want)) {
			t.Errorf("%s: HTTP %d\n%s\n%s", name, w.Code, got, test.want)
		}
	}
}

// TestExchanges: on a pipe each answer goes out in the words of its question, and
// nothing is kept of what is over.
func TestExchanges(t *testing.T) {
	t.Parallel()
	var e exchanges
	begin := func(id string) { e.begun(&message{ID: []byte(id), Method: "x", own: later()}) }
	begin(`1`)
	begin(`"1"`)
	begin(`7`)
	begin(`7`) // which is refused
	begin(`8`)
	for _, step := range []struct{ line, want string }{
		{`{"id":2,"result":{"old":1}}`, `{"id":2,"result":{"old":1}}`},
		{`{"id":1,"result":{"old":1}}`, `{"id":1,"result":{"new":1}}`},
		{`{"id":1,"result":{"old":1}}`, `{"id":1,"result":{"old":1}}`},
		{`{"id":"1","error":{"code":-32020}}`, `{"id":"1","error":{"code":-32050}}`},
		{`{"id":7,"error":{"code":-32600}}`, `{"id":7,"error":{"code":-32600}}`},
		{`{"method":"n","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"old":1}}`, `{"method":"n","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"new":1}}`},
		{`{"method":"n","params":{"old":1}}`, `{"method":"n","params":{"old":1}}`},
		{`{"id":7,"method":"n","params":{"old":1}}`, `{"id":7,"method":"n","params":{"old":1}}`},
		{`{"id":7,"result":{"old":1}}`, `{"id":7,"result":{"new":1}}`},
		{`no JSON`, `no JSON`},
	} {
		if got := string(e.out([]byte(step.line))); got != step.want {
			t.Errorf("%s goes out as %s", step.line, got)
		}
	}
	e.cancelled([]byte(`8`))
	if len(e.all) != 0 {
		t.Errorf("%d are kept", len(e.all))
	}
}
