// Package passthrough checks that a gateway changes nothing for those who call no tasks. It sends a corpus of requests to
// the handler of an SDK, and to the gateway in front of the same SDK's server, and compares the answers. Only tests import it.
package passthrough

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// Process is one process of a server: the SDK's own handler of a server without tasks, and the gateway in front of the same
// server with tasks. Tools are those that the gateway adds.
type Process struct {
	Bare, Gateway http.Handler
	// Modern is the SDK's own handler for 2026-07-28, if that is not Bare.
	Modern http.Handler
	Tools  []mcptask.ToolSpec
}

// answer is what a client gets.
type answer struct {
	status  int
	headers http.Header
	body    string
}

// String returns the answer as text.
func (a answer) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d\n", a.status)
	names := make([]string, 0, len(a.headers))
	for name := range a.headers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(&text, "%s: %s\n", name, strings.Join(a.headers[name], " | "))
	}
	body := a.body
	if len(body) > 4000 {
		body = body[:2000] + "…" + body[len(body)-2000:]
	}
	return text.String() + body
}

// side is one of the two handlers, in two processes: the former one has opened a session and is gone.
type side struct {
	t        *testing.T
	url      string
	revision string
	former   string
	ours     map[string]bool
	client   *http.Client
}

// newSide starts the two processes of a side, one after the other.
func newSide(t *testing.T, revision string, former, now http.Handler, ours map[string]bool) *side {
	s := &side{t: t, revision: revision, ours: ours, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute}}}
	serve := func(h http.Handler) *httptest.Server {
		web := httptest.NewServer(h)
		t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
		return web
	}
	t.Cleanup(s.client.CloseIdleConnections)
	if revision != mcptask.Revision20260728 {
		s.url = serve(former).URL
		s.former = s.open()
	}
	s.url = serve(now).URL
	return s
}

// open opens a session.
func (s *side) open() string {
	headers := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	res, err := s.do(s.t.Context(), request{method: http.MethodPost, headers: headers, body: initializing(s.revision)}, "")
	if err != nil {
		s.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	id := res.Header.Get(sessionHeader)
	headers[versionHeader] = s.revision
	res, err = s.do(s.t.Context(), request{method: http.MethodPost, headers: headers, body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`}, id)
	if err != nil {
		s.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return id
}

// sessionOf returns the session that a request names.
func (s *side) sessionOf(kind sessionKind) string {
	const madeUp = "mcp-session-00000000-0000-4000-8000-000000000000"
	if s.revision == mcptask.Revision20260728 && kind != noSession && kind != sessionlessPeer {
		return madeUp
	}
	switch kind {
	case ownSession:
		return s.open()
	case formerSession:
		return s.former
	case endedSession:
		id := s.open()
		_, _ = s.do(s.t.Context(), request{method: http.MethodDelete, headers: map[string]string{versionHeader: s.revision}}, id)
		return id
	case madeUpSession:
		return madeUp
	case malformedID:
		return "made up"
	}
	return ""
}

// do sends a request.
func (s *side) do(ctx context.Context, q request, session string) (*http.Response, error) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, q.method, s.url+"/mcp"+q.path, strings.NewReader(q.body))
	if err != nil {
		s.t.Fatal(err)
	}
	host := strings.TrimPrefix(s.url, "http://")
	for name, value := range q.headers {
		value = strings.ReplaceAll(value, "{host}", host)
		switch {
		case value == "":
		case name == "Host":
			r.Host = value
		default:
			for _, one := range strings.Split(value, "\n") {
				r.Header.Add(name, one)
			}
		}
	}
	if len(q.body) > 1<<20 { // a server that refuses the body may close the connection while the body comes
		r.Header.Set("Expect", "100-continue")
	}
	if session != "" {
		r.Header.Set(sessionHeader, session)
	}
	res, err := s.client.Do(r)
	if err == nil {
		opened, url := res.Header.Get(sessionHeader), r.URL.String()
		s.t.Cleanup(func() {
			_ = res.Body.Close()
			if opened != "" {
				s.end(url, opened)
			}
		})
	}
	return res, err
}

// end ends a session, unless it has ended, so that its goroutines do not slow later tests down.
func (s *side) end(url, session string) {
	r, err := http.NewRequestWithContext(context.WithoutCancel(s.t.Context()), http.MethodDelete, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set(sessionHeader, session)
	r.Header.Set(versionHeader, s.revision)
	if res, err := s.client.Do(r); err == nil {
		_ = res.Body.Close()
	}
}

// send sends a request of the corpus, and answers what the server asks before its answer.
func (s *side) send(q request) answer {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), time.Minute)
	defer stop()
	session := s.sessionOf(q.session)
	res, err := s.do(ctx, q, session)
	if err != nil {
		return answer{body: "the connection broke"}
	}
	got := answer{status: res.StatusCode, headers: res.Header.Clone()}
	for _, name := range []string{"Date", "Content-Length"} {
		got.headers.Del(name)
	}
	isStream := strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	var body []byte
	switch {
	case q.then == leaves && isStream: // it is enough that there is a stream
	case isStream:
		var answering sync.WaitGroup
		reading, end := context.WithCancel(ctx)
		if q.then != "" {
			answering.Go(guard.Func(nil, "the client", func() { s.repeat(reading, q.then, session) }))
		}
		body = s.readStream(ctx, res.Body, session, q.then != "")
		end()
		answering.Wait()
	default:
		body, _ = io.ReadAll(res.Body)
	}
	ids := regexp.MustCompile(regexp.QuoteMeta(session) + `|127\.0\.0\.1:\d+`)
	if session == "" {
		ids = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	}
	body = flushed.ReplaceAll(body, nil)
	got.body = ids.ReplaceAllString(sortResults(s.withoutOurs(string(body))), "…")
	if got.headers.Get(sessionHeader) != "" {
		got.headers.Set(sessionHeader, "…")
	}
	return got
}

// Flushed is the method of a notification that the corpus ignores. A tool sends it last if its SDK may lose the last one.
const Flushed = "notifications/flushed"

var flushed = regexp.MustCompile(`event: message\ndata: .*` + Flushed + `.*\n\n`)

// respond posts a message of a client.
func (s *side) respond(ctx context.Context, body, session string) (status int) {
	headers := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", versionHeader: s.revision}
	res, err := s.do(ctx, request{method: http.MethodPost, headers: headers, body: body}, session)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// repeat posts a message of a client until ctx ends, since an SDK may send the headers of a stream before it knows the stream.
func (s *side) repeat(ctx context.Context, body, session string) {
	for ctx.Err() == nil {
		s.respond(ctx, body, session)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// readStream reads a stream: up to its end, or one event of it. It answers the server's requests.
func (s *side) readStream(ctx context.Context, stream io.Reader, session string, one bool) []byte {
	var read bytes.Buffer
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		data, isData := strings.CutPrefix(line, "data: ")
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if !strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "id:") { // keep-alives and random IDs
			read.WriteString(line)
		}
		if isData && json.Unmarshal([]byte(data), &asked) == nil && asked.Method != "" && asked.ID != nil {
			if session == "" { // nobody can answer
				return read.Bytes()
			}
			result := map[string]string{
				"elicitation/create":     `{"action":"accept","content":{"name":"x"}}`,
				"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`,
				"roots/list":             `{"roots":[{"uri":"file:///x"}]}`,
			}[asked.Method]
			status := s.respond(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, result), session)
			fmt.Fprintf(&read, "(the response to %s: %d)\n", asked.Method, status)
		}
		if err != nil || one && isData {
			return read.Bytes()
		}
	}
}

// sortResults sorts the members of each result in a body, since JSON gives their order no meaning. Their values keep
// their bytes.
func sortResults(body string) string {
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		data, isEvent := strings.CutPrefix(line, "data: ")
		var m struct {
			ID     json.RawMessage            `json:"id"`
			Result map[string]json.RawMessage `json:"result"`
		}
		if json.Unmarshal([]byte(data), &m) != nil || m.Result == nil {
			continue
		}
		var sorted strings.Builder
		for _, name := range slices.Sorted(maps.Keys(m.Result)) {
			fmt.Fprintf(&sorted, " %s:%s", name, m.Result[name])
		}
		lines[i] = fmt.Sprintf("result of %s:%s (event: %t)", m.ID, sorted.String(), isEvent)
	}
	return strings.Join(lines, "\n")
}

// withoutOurs removes the entries of our tools from the list in a body, and leaves all other bytes.
func (s *side) withoutOurs(body string) string {
	var entries []json.RawMessage
	for _, line := range append(strings.Split(body, "\n"), body) {
		var list struct {
			Result struct {
				Tools []json.RawMessage `json:"tools"`
			} `json:"result"`
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &list) == nil {
			entries = append(entries, list.Result.Tools...)
		}
	}
	for _, entry := range entries {
		var tool struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(entry, &tool) == nil && s.ours[tool.Name] {
			for _, text := range []string{string(entry) + ",", "," + string(entry), string(entry)} {
				body = strings.Replace(body, text, "", 1)
			}
		}
	}
	return body
}

// Compare sends the corpus in each revision, for each of the ways to configure an SDK. start starts a process. The answers
// have to be the same but for the differences that are listed for the SDK.
func Compare(t *testing.T, sdk string, starts map[string]func(*testing.T) Process) {
	t.Helper()
	if testing.Short() {
		t.Skip("compares thousands of answers, which takes minutes under the race detector")
	}
	var mu sync.Mutex
	found := map[int]bool{}
	t.Run("requests", func(t *testing.T) {
		for name, start := range starts {
			for _, revision := range revisions {
				t.Run(name+"/"+revision, func(t *testing.T) {
					t.Parallel()
					for i := range compareIn(t, sdk, revision, start) {
						mu.Lock()
						found[i] = true
						mu.Unlock()
					}
				})
			}
		}
	})
	page, err := os.ReadFile("../../docs/reference/other-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table()) {
		t.Errorf("the table in docs/reference/other-tools.md is not\n%s", table())
	}
	for i, d := range differences {
		if !found[i] && (d.sdks == nil || slices.Contains(d.sdks, sdk)) && !t.Failed() {
			t.Errorf("%s: no request shows this difference any more: remove it", d.title)
		}
	}
}

// compareIn sends the corpus in a revision. It returns the listed differences that it has found.
func compareIn(t *testing.T, sdk, revision string, start func(*testing.T) Process) map[int]bool {
	t.Helper()
	former, now := start(t), start(t)
	if revision == mcptask.Revision20260728 && now.Modern != nil {
		now.Bare = now.Modern
	}
	ours := map[string]bool{}
	for _, tool := range now.Tools {
		ours[tool.Name] = true
	}
	bare, gateway := newSide(t, revision, former.Bare, now.Bare, ours), newSide(t, revision, former.Gateway, now.Gateway, ours)
	found := map[int]bool{}
	for _, q := range corpus(revision) {
		want, got := bare.send(q), gateway.send(q)
		if want.String() == got.String() {
			continue
		}
		i := slices.IndexFunc(differences, func(d difference) bool { return d.explains(sdk, revision, q.name, want, got) })
		if i < 0 {
			t.Errorf("%s: the SDK answers\n%s\n\nand the gateway\n%s", q.name, want, got)
			continue
		}
		found[i] = true
	}
	return found
}
