package pushtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestRequests checks requests for sampling, roots and pages with a client whose messages are written out byte by byte.
func TestRequests(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
		const sampled = `{"role":"assistant","model":"m","content":{"type":"text","text":"s"}}`
		for _, c := range []struct{ tool, method, response, want string }{ // the response is no answer to such a request if want is ""
			{"sample", "sampling/createMessage", sampled, `assistant m {"type":"text","text":"s"}`},
			{"sample", "sampling/createMessage", `{"role":"assistant","model":"m","content":[{"type":"text","text":"s"},{"type":"text","text":"t"}]}`,
				`assistant m [{"type":"text","text":"s"},{"type":"text","text":"t"}]`},
			{"sample", "sampling/createMessage", `{"role":"assistant","model":"m","content":[{"type":"text","text":"s"}]}`, `assistant m {"type":"text","text":"s"}`},
			{"sample", "sampling/createMessage", `{"role":"assistant","model":"m","content":[]}`, ""},
			{"sample", "sampling/createMessage", `{"role":"assistant","model":"m","content":"s"}`, ""},
			{"sample", "sampling/createMessage", `{"role":"assistant","model":"m"}`, ""},
			{"sample", "sampling/createMessage", `{"action":"cancel"}`, ""},
			{"roots", "roots/list", `{"roots":[{"uri":"file:///a","name":"a"},{"uri":"file:///b"}]}`, "[{file:///a a} {file:///b }]"},
			{"roots", "roots/list", `{"roots":[]}`, "[]"},
			{"roots", "roots/list", `{"action":"cancel"}`, ""},
			{"roots", "roots/list", `{"roots":7}`, ""},
			{"url", "elicitation/create", `{"action":"accept"}`, "<nil>"},
			{"url", "elicitation/create", `{"action":"decline"}`, "declined"},
			{"url", "elicitation/create", `{"action":"cancel"}`, "dismissed"},
			{"url", "elicitation/create", `{"action":"x"}`, ""},
			{"url", "elicitation/create", `null`, ""},
		} {
			p := askedPeer(t, url)
			want := c.want
			if want == "" {
				want = "invalid"
			}
			id := p.Create(c.tool, nil)
			f := p.OpenGet()
			q := f.NextQuestion(id)
			if q.Method != c.method || (c.tool == "url") != (q.Params.URL == "https://example.com/pay") {
				t.Errorf("%s", q.Text)
			}
			p.Respond(q.ID, `"result":`+c.response)
			wantText(p, id, want)
			if c.want != "" { // on the stream of a plain call
				f := p.Send("tools/call", map[string]any{"name": c.tool, "arguments": map[string]any{}})
				p.Respond(f.NextQuestion("").ID, `"result":`+c.response)
				if got := wiretest.ToolText(f.Next().Result); got != want {
					t.Errorf("%s %s plainly: %s", c.tool, c.response, got)
				}
			}

			m := wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "a", wiretest.AllCapabilities)
			id = m.Create(c.tool, map[string]any{})
			var key string
			for k, request := range m.Until(id, "input_required").Get("inputRequests").(map[string]any) {
				if key = k; request.(map[string]any)["method"] != c.method {
					t.Errorf("%v", request)
				}
			}
			update := m.Call("tasks/update", map[string]any{"taskId": id, "inputResponses": wiretest.InputResponses(key, c.response)})
			if c.want == "" {
				update.Want(http.StatusBadRequest, wiretest.InvalidParams)
				m.Until(id, "input_required")
				m.Task("tasks/cancel", id).OK()
				continue
			}
			update.OK()
			wantText(m, id, c.want)
		}
	})
}

// TestBlocksOfMessages checks that a message of one block is sent as an object and one of several as a list, and that
// clients of revisions in which a message has one block do not get the list.
func TestBlocksOfMessages(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{})
		const sampled = `"result":{"role":"assistant","model":"m","content":{"type":"text","text":"s"}}`
		for _, revision := range []string{"2025-03-26", "2025-06-18", wiretest.LegacyRevision} {
			p := wiretest.NewPeerWith(t, url, revision, "", wiretest.AllCapabilities)
			f := p.Send("tools/call", map[string]any{"name": "sample", "arguments": wiretest.AskArguments("one")})
			q := f.NextQuestion("")
			if !strings.Contains(q.Text, `"content":{"text":"one","type":"text"}`) {
				t.Errorf("%s: %s", revision, q.Text)
			}
			p.Respond(q.ID, sampled)
			if got := wiretest.ToolText(f.Next().Result); got != `assistant m {"type":"text","text":"s"}` {
				t.Errorf("%s: %s", revision, got)
			}
			f = p.Send("tools/call", map[string]any{"name": "sample", "arguments": wiretest.AskArguments("one", "two")})
			if revision != wiretest.LegacyRevision {
				if got := wiretest.ToolText(f.Next().Result); got != "cannot ask" {
					t.Errorf("%s: %s", revision, got)
				}
				continue
			}
			if q = f.NextQuestion(""); !strings.Contains(q.Text, `"content":[{"text":"one","type":"text"},{"text":"two","type":"text"}]`) {
				t.Errorf("%s: %s", revision, q.Text)
			}
			p.Respond(q.ID, sampled)
		}
	})
}

// TestClientRequests checks the same with the generated client's options.
func TestClientRequests(t *testing.T) {
	t.Parallel()
	url := wiretest.ServeAsk(t, wiretest.Setup{})
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		var broken atomic.Bool
		var opened mcptask.Question
		var mu sync.Mutex
		conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{Revision: revision,
			Sample: func(_ context.Context, r mcptask.SampleRequest) (*mcptask.SampleResult, error) {
				if broken.Load() {
					return nil, errors.New("the model is away")
				}
				return &mcptask.SampleResult{Role: "assistant", Model: "m", Content: r.Messages[0].Content}, nil
			},
			Roots: []mcptask.Root{{URI: "file:///a", Name: "a"}},
			OpenURL: func(_ context.Context, q mcptask.Question) error {
				mu.Lock()
				defer mu.Unlock()
				if opened = q; broken.Load() {
					return mcptask.ErrDeclined
				}
				return nil
			},
			Answer: mcptask.Answer(wiretest.NoteSpec, func(_ context.Context, q mcptask.Question) (wiretest.NoteInput, error) {
				return wiretest.NoteInput{Note: strings.TrimSuffix(q.Message, "?")}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
		defer cancel()
		for tool, want := range map[string]string{
			"sample": `assistant m [{"text":"one","type":"text"},{"text":"two","type":"text"}]`, "roots": "[{file:///a a}]", "url": "<nil>", "ask": "one,two",
		} {
			for _, opts := range [][]mcptask.CallOption{nil, {mcptask.Plain()}} {
				if got, err := mcptask.Run[string](ctx, conn, tool, wiretest.AskInput{Steps: []string{"one", "two"}}, opts...); err != nil || canonical(got) != canonical(want) {
					t.Errorf("%s: %s, %v", tool, got, err)
				}
			}
		}
		mu.Lock()
		if opened.URL != "https://example.com/pay" || opened.Message != "Pay here." {
			t.Errorf("%+v", opened)
		}
		mu.Unlock()
		broken.Store(true)
		if got, err := mcptask.Run[string](ctx, conn, "url", wiretest.AskInput{}); got != "declined" || err != nil {
			t.Errorf("%s, %v", got, err)
		}
		// If the model is away, 2025-11-25 reports an error to the server. In 2026-07-28, the waiting caller gets the
		// error, and the task does not stay behind.
		got, err := mcptask.Run[string](ctx, conn, "sample", wiretest.AskInput{})
		if revision == wiretest.LegacyRevision && (got != "cannot ask" || err != nil) ||
			revision == wiretest.ModernRevision && (err == nil || !strings.Contains(err.Error(), "the model is away")) {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// canonical returns JSON in a form that can be compared as text.
func canonical(text string) string {
	i := strings.Index(text, "{")
	var value any
	if i < 0 || json.Unmarshal([]byte(text[i:]), &value) != nil {
		return text
	}
	data, _ := json.Marshal(value)
	return text[:i] + string(data)
}

// lossy is a transport whose event streams can be cut.
type lossy struct {
	mu   sync.Mutex
	open map[*cutBody]bool
	gets atomic.Int32
}

type cutBody struct {
	io.ReadCloser
	from *lossy
}

// RoundTrip implements http.RoundTripper.
func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := memnet.OneOff.RoundTrip(r)
	if err == nil && r.Method == http.MethodGet && res.StatusCode == http.StatusOK {
		l.gets.Add(1)
		b := &cutBody{res.Body, l}
		l.mu.Lock()
		l.open[b] = true
		l.mu.Unlock()
		res.Body = b
	}
	return res, err
}

// Close implements io.Closer.
func (b *cutBody) Close() error {
	b.from.mu.Lock()
	delete(b.from.open, b)
	b.from.mu.Unlock()
	return b.ReadCloser.Close()
}

func (l *lossy) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := range l.open {
		_ = b.ReadCloser.Close()
	}
}

// TestClientStreamDrops drops the generated client's stream while a person thinks. The person is
// asked once, and the answer counts.
func TestClientStreamDrops(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{})
		wire := &lossy{open: map[*cutBody]bool{}}
		var asked atomic.Int32
		conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{Revision: wiretest.LegacyRevision, HTTPClient: &http.Client{Transport: wire},
			Answer: mcptask.Answer(wiretest.NoteSpec, func(context.Context, mcptask.Question) (wiretest.NoteInput, error) {
				asked.Add(1)
				before := wire.gets.Load()
				wire.cut()
				for end := time.Now().Add(wiretest.Patience); wire.gets.Load() == before && time.Now().Before(end); {
					time.Sleep(10 * time.Millisecond) // until the SDK has a new stream
				}
				time.Sleep(100 * time.Millisecond)
				return wiretest.NoteInput{Note: "mine"}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2*wiretest.Patience)
		defer cancel()
		got, err := mcptask.Run[string](ctx, conn, "ask", wiretest.AskInput{Steps: []string{"one"}})
		if got != "mine" || err != nil || asked.Load() != 1 || wire.gets.Load() < 2 {
			t.Errorf("%q, %v, asked %d times over %d streams", got, err, asked.Load(), wire.gets.Load())
		}
	})
}

// withoutGET is a transport to a server that offers no standalone stream.
type withoutGET struct{}

// RoundTrip implements http.RoundTripper.
func (withoutGET) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	return memnet.OneOff.RoundTrip(r)
}

// TestClientListens checks that the generated client asks for the result of a task that asks
// (C-51).
func TestClientListens(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{})
		conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{Revision: wiretest.LegacyRevision, HTTPClient: &http.Client{Transport: withoutGET{}},
			Answer: mcptask.Answer(wiretest.NoteSpec, func(_ context.Context, q mcptask.Question) (wiretest.NoteInput, error) {
				return wiretest.NoteInput{Note: strings.TrimSuffix(q.Message, "?")}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
		defer cancel()
		if got, err := mcptask.Run[string](ctx, conn, "ask", wiretest.AskInput{Steps: []string{"one", "two"}, Linger: 100}); got != "one,two" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
