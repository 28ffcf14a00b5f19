package gosdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk/internal/siege"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// fuzzed is a server to which a fuzz target sends one input after the other.
type fuzzed struct {
	tasks   *taskserver.Server
	store   taskstore.Store
	sdk     *mcp.Server
	handler http.Handler
	caller  taskserver.Caller
	journal journal
	// Placeholders that an input may use: $DONE, $ASK, $BOUND, $VICTIM and $SESSION.
	done, asking, bound, victim, session string
}

// journal keeps the log records of panics. Without it, a recover would hide a panic from the fuzzer.
type journal struct {
	mu     sync.Mutex
	panics []string
}

// Write implements io.Writer. Each record is one call.
func (j *journal) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("panicked")) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.panics = append(j.panics, string(p))
	}
	return len(p), nil
}

// check fails the test if anything has panicked.
func (j *journal) check(t testing.TB) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, text := range j.panics {
		t.Error(text)
	}
	j.panics = nil
}

// fuzzTools take no time. The server has them beside those of siege.Tools.
func fuzzTools() mcptask.Tools {
	policy := mcptask.Policy{Task: mcptask.TaskOptional}
	required := mcptask.Policy{Task: mcptask.TaskRequired}
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}}}`
	return mcptask.Tools{Service: "Fuzz", Impl: struct{}{}, Fallback: mcptask.FallbackTools, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "required", InputSchema: schema, Policy: required},
			func(context.Context, *mcptask.Task, struct{}) (string, error) { return "done", nil }),
		mcptask.NewTool(mcptask.ToolSpec{Name: "asks", InputSchema: schema, Policy: policy},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				answer, err := mcptask.Ask[wiretest.NoteInput](ctx, task, wiretest.NoteSpec, "step", "?")
				return answer.Note, err
			}),
	}}
}

func newFuzzed(f *testing.F) *fuzzed {
	f.Helper()
	s := &fuzzed{store: taskstore.NewMemory(), caller: taskserver.Caller{Principal: "fuzzer", Revision: wiretest.ModernRevision, CanAsk: []string{"elicitation/create"}}}
	var err error
	s.tasks, err = taskserver.New(taskserver.Options{
		Store: s.store, Logger: slog.New(slog.NewTextHandler(&s.journal, nil)), MaxBody: fuzzBody,
		Principal: func(context.Context) (string, error) { return "fuzzer", nil },
	}, fuzzTools(), wiretest.SecretTools(), siege.Tools(time.Hour))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.tasks.Close() })
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: "fuzz", Version: "1"}, nil)
	gosdk.AddTools(s.sdk, s.tasks)
	s.handler = gosdk.NewHandler(s.tasks, func(*http.Request) *mcp.Server { return s.sdk }, nil)
	owner := s.caller
	owner.Principal = "victim"
	s.victim = s.call(f, owner, "secret_ask")
	return s
}

// call makes a task.
func (s *fuzzed) call(t testing.TB, caller taskserver.Caller, tool string) string {
	t.Helper()
	reply, err := s.tasks.Backend().Call(context.Background(), caller, tool, json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil || reply.Task == nil {
		t.Fatalf("%+v %v", reply, err)
	}
	return reply.Task.ID
}

// prepare makes the tasks that inputs attack, unless they are still there.
func (s *fuzzed) prepare(t testing.TB) {
	t.Helper()
	if _, err := s.tasks.Backend().Peek(s.done); err != nil {
		s.done = s.call(t, s.caller, "quick")
		if _, err := s.tasks.Backend().Await(t.Context(), s.caller, s.done); err != nil {
			t.Fatal(err)
		}
	}
	for tool, id := range map[string]*string{"asks": &s.asking, "bound_ask": &s.bound} {
		for r, err := s.tasks.Backend().Peek(*id); err != nil || r.Done() || len(r.Outstanding()) == 0; r, err = s.tasks.Backend().Peek(*id) {
			if err != nil || r.Done() {
				*id = s.call(t, s.caller, tool)
			}
			runtime.Gosched()
		}
	}
}

// fill replaces the placeholders in an input.
func (s *fuzzed) fill(text string) string {
	return strings.NewReplacer("$DONE", s.done, "$ASK", s.asking, "$BOUND", s.bound, "$VICTIM", s.victim, "$SESSION", s.session).Replace(text)
}

// stored returns the IDs of the client's tasks.
func (s *fuzzed) stored(t testing.TB) map[string]bool {
	t.Helper()
	records, err := s.store.List(context.Background(), "fuzzer", taskstore.Position{}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, r := range records {
		ids[r.ID] = true
	}
	return ids
}

// tidy ends the tasks that an input has made. If the input was refused, it checks that there are none.
func (s *fuzzed) tidy(t testing.TB, before map[string]bool, sent []byte) {
	t.Helper()
	for id := range s.stored(t) {
		if before[id] {
			continue
		}
		// In 2025-11-25, a client that leaves early cancels nothing. A call that was never answered may have made a
		// task.
		answered := bytes.Contains(sent, []byte(`"result"`)) || bytes.Contains(sent, []byte(`"error"`))
		if answered && !bytes.Contains(sent, []byte(id)) { // it ends with the call that made it
			for end := time.Now().Add(wiretest.Patience); s.stored(t)[id]; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the client was not told of this task: %s", sent)
				}
			}
			continue
		}
		_, _, _ = s.tasks.Backend().Cancel(context.Background(), s.caller, id) // or it has ended
		if _, err := s.tasks.Backend().Await(t.Context(), s.caller, id); err != nil {
			t.Error(err)
		}
		r, err := s.store.Get(context.Background(), id)
		if err == nil {
			err = s.store.Delete(context.Background(), r)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if r, err := s.tasks.Backend().Peek(s.victim); err != nil || r.Done() || r.CancelRequested || len(r.Outstanding()) == 0 && r.Phase != taskstore.PhaseRunning {
		t.Errorf("the victim's task: %+v %v", r, err)
	}
	if bytes.Contains(sent, []byte(wiretest.Secret)) {
		t.Errorf("what is the victim's: %s", sent)
	}
}

// serve sends one request to the gateway and returns the response. It leaves a stream after a moment.
func (s *fuzzed) serve(t testing.TB, handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	ctx := within(t, 30*time.Millisecond)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r.WithContext(ctx))
	return w
}

// Limits for an input and for its costs.
const (
	// fuzzBody bounds a request's body, in bytes.
	fuzzBody = 1 << 16
	// fuzzWork bounds the bytes that the server allocates in all for one request. Allocation measures the work even on
	// a busy machine. Code that computes with poison numbers allocates gigabytes.
	fuzzWork = 64 << 20
)

// allocated counts the bytes that the process has ever allocated.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// FuzzHTTP sends any head, which is a request line without its version and headers, with any body. It twists one value
// of the body (siege.Twist). The answer is a message of its revision or nothing. No unannounced task and no goroutine
// stays, nothing has panicked, and the work is bounded.
func FuzzHTTP(f *testing.F) {
	for i, seed := range siege.Requests() {
		f.Add(seed[0], []byte(seed[1]), byte(0), uint16(0), uint16(0))
		if place, ok := siege.Place([]byte(seed[1])); ok {
			for how := range byte(siege.Twists) {
				if (i+int(how))%4 == 0 { // each kind in many places, and few in each
					f.Add(seed[0], []byte(seed[1]), how+1, place, uint16(fuzzBody/3))
				}
			}
		}
	}
	s := newFuzzed(f)
	g := s.handler.(*gateway.Gateway)
	post := func(t testing.TB, method, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://localhost/", strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		r.Header.Set("Mcp-Session-Id", s.session)
		return s.serve(t, s.handler, r)
	}
	f.Fuzz(func(t *testing.T, head string, body []byte, how byte, place, size uint16) {
		body = siege.Twist(body, how, place, size)
		s.prepare(t)
		before, tasks := leak.Now(), s.stored(t)
		s.session = ""
		s.session = post(t, http.MethodPost, siege.OpenSession).Header().Get("Mcp-Session-Id")
		post(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		sessions := []string{s.session}

		var sent []byte
		if r := s.request(t, head, body); r != nil {
			worked := allocated()
			w := s.serve(t, wirecheck.Handler(t, s.handler), r)
			if worked = allocated() - worked; worked > fuzzWork {
				t.Errorf("%d MiB are allocated for a request of %d bytes", worked>>20, len(body))
			}
			sent = w.Body.Bytes()
			if id := w.Header().Get("Mcp-Session-Id"); id != "" && id != s.session { // of an initialize
				sessions = append(sessions, id)
			}
		}
		for _, s.session = range sessions { // a call goes on without its client until its session ends
			post(t, http.MethodDelete, "")
		}
		s.tidy(t, tasks, sent)
		before.NoneLeft(t)
		s.journal.check(t)
		for end := time.Now().Add(wiretest.Patience); g.Counts() != (gateway.Counts{}); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("left behind: %+v", g.Counts())
			}
		}
	})
}

// request makes a request of a head and a body. It returns nil if net/http refuses the head.
func (s *fuzzed) request(t testing.TB, head string, body []byte) *http.Request {
	line, rest, _ := strings.Cut(s.fill(head), "\n")
	method, path, _ := strings.Cut(line, " ")
	headers, err := textproto.NewReader(bufio.NewReader(strings.NewReader(rest + "\r\n\r\n"))).ReadMIMEHeader()
	if err != nil || !strings.HasPrefix(path, "/") {
		return nil
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost/", strings.NewReader(s.fill(string(body))))
	if err != nil {
		return nil
	}
	r.Header, r.RequestURI = http.Header(headers), "/"
	return r
}

// FuzzPipe sends lines of any kind, after an initialize if the input asks for one.
func FuzzPipe(f *testing.F) {
	for _, seed := range siege.Messages() {
		f.Add(true, []byte(seed))
		f.Add(false, []byte(seed))
	}
	s := newFuzzed(f)
	f.Fuzz(func(t *testing.T, opened bool, lines []byte) {
		s.prepare(t)
		before, tasks := leak.Now(), s.stored(t)
		said := s.fill(string(lines)) + "\n"
		if opened {
			said = siege.OpenSession + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + said
		}
		var sent wiretest.SafeBuffer
		in, out := wirecheck.Pipes(t, strings.NewReader(said), &sent)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = s.sdk.Run(context.WithoutCancel(t.Context()), gosdk.PipeTransport(s.tasks, in, out)) // the SDK decides how it ends
		}()
		select {
		case <-ended:
		case <-time.After(wiretest.Patience):
			t.Fatal("the server goes on")
		}
		s.tidy(t, tasks, []byte(sent.String()))
		before.NoneLeft(t)
		s.journal.check(t)
	})
}
