package console_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/console"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// safeBuffer is a log that several goroutines write.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// desk is a server with a console.
type desk struct {
	t      *testing.T
	tasks  *taskserver.Server
	url    string
	log    safeBuffer
	client *http.Client
	finish chan struct{} // lets a handler of render end
}

type renderInput struct {
	File   string `json:"file"`
	Secret string `json:"secret"`
}

// alice owns the tasks.
var alice = taskserver.Caller{Principal: "alice@example.com", Revision: mcptask.Revision20260728, CanAsk: []string{"elicitation/create"}}

// open serves a console.
func open(t *testing.T, options console.Options) *desk {
	t.Helper()
	return openWith(t, nil, options)
}

// openWith serves the console of a server with a store.
func openWith(t *testing.T, store taskstore.Store, options console.Options) *desk {
	t.Helper()
	d := &desk{t: t, finish: make(chan struct{}, 10), client: &http.Client{Transport: memnet.NewTransport(), CheckRedirect: stay}}
	policy := mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost}
	render := mcptask.NewTool(mcptask.ToolSpec{Name: "render", InputSchema: `{"type":"object"}`, Policy: policy},
		func(ctx context.Context, task *mcptask.Task, in renderInput) (string, error) {
			task.Progress(ctx, 1, 4, "frame <1>")
			select {
			case <-d.finish:
				return "rendered " + in.File + " with " + in.Secret, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
	ship := mcptask.NewTool(mcptask.ToolSpec{Name: "ship", InputSchema: `{"type":"object"}`, Policy: policy},
		func(ctx context.Context, task *mcptask.Task, _ renderInput) (string, error) {
			answer, err := mcptask.Ask[map[string]any](ctx, task, mcptask.InputSpec{Name: "Approval", Schema: `{"type":"object","required":["approve"],"properties":{
				"approve":{"type":"boolean","title":"Approve it?"},"size":{"type":"string","enum":["small","large"]},"boxes":{"type":"integer"},"note":{"type":"string"},
				"speed":{"type":"string","oneOf":[{"const":"express","title":"Tomorrow"},{"const":"slow"}]},"days":{"type":"integer","enum":[1,2],"default":2},"to":{"type":"array","items":{"type":"string","enum":["x","y"]}},
				"at":{"type":"string","format":"date-time","default":"2026-01-02T03:04:05+02:00"},"day":{"type":"string","format":"date"},
				"exact":{"type":"string","format":"date-time","default":"2026-01-02T03:04:05.5Z"}}}`},
				"approve", "Ship <b>it</b>?")
			data, encodeErr := json.Marshal(answer)
			return string(data), errors.Join(err, encodeErr)
		})
	var err error
	d.tasks, err = taskserver.New(taskserver.Options{Store: store, Logger: slog.New(slog.NewTextHandler(&d.log, nil))},
		mcptask.Tools{Service: "Studio", Impl: d, Tools: []mcptask.Tool{render, ship}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.tasks.Close() })
	page, err := console.New(d.tasks, options)
	if err != nil {
		t.Fatal(err)
	}
	web := memnet.NewServer(page, nil)
	t.Cleanup(web.Close)
	t.Cleanup(d.client.CloseIdleConnections)
	d.url = web.URL + "/console/"
	return d
}

// start makes a task and returns its ID.
func (d *desk) start(caller taskserver.Caller, tool, arguments string) string {
	d.t.Helper()
	reply, err := d.tasks.Backend().Call(d.t.Context(), caller, tool, json.RawMessage(arguments), taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		d.t.Fatal(err)
	}
	return reply.Task.ID
}

// awaitState waits until a condition holds for a task.
func (d *desk) awaitState(caller taskserver.Caller, id string, is func(taskstore.Record) bool) taskstore.Record {
	d.t.Helper()
	record, err := d.tasks.Backend().Get(d.t.Context(), caller, id)
	for err == nil && !is(record) {
		record, err = d.tasks.Backend().Changed(d.t.Context(), caller, id, record.Version)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return record
}

func isDone(r taskstore.Record) bool            { return r.Done() }
func asks(r taskstore.Record) bool              { return r.Phase == taskstore.PhaseInputRequired }
func reports(r taskstore.Record) bool           { return r.StatusMessage != "" }
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// request sends a request as a browser on the page itself does.
func (d *desk) request(method, below string, form url.Values, change ...func(*http.Request)) (status int, header http.Header, body string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+below, strings.NewReader(form.Encode()))
	if err != nil {
		d.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, f := range change {
		f(r)
	}
	response, err := d.client.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(content)
}

// get returns a page.
func (d *desk) get(below string) string {
	d.t.Helper()
	status, _, body := d.request(http.MethodGet, below, nil)
	if status != http.StatusOK {
		d.t.Fatalf("%s: HTTP %d\n%s\n%s", below, status, body, d.log.String())
	}
	return body
}

// pageOf returns the path of the page of the newest task of a tool.
func (d *desk) pageOf(tool string) string {
	d.t.Helper()
	found := regexp.MustCompile(`href="/console/(tasks/[^"]+)"`).FindStringSubmatch(d.get("tasks?tool=" + tool))
	if found == nil {
		d.t.Fatalf("no link to a task of %s", tool)
	}
	return found[1]
}

func wants(t *testing.T, where, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", where, want, text)
		}
	}
}

func lacks(t *testing.T, where, text string, all ...string) {
	t.Helper()
	for _, hidden := range all {
		if strings.Contains(text, hidden) {
			t.Errorf("%s has %q:\n%s", where, hidden, text)
		}
	}
}

func TestPages(t *testing.T) {
	d := open(t, console.Options{})
	id := d.start(alice, "render", `{"file":"a.mp4","secret":"hunter2"}`)
	d.awaitState(alice, id, reports)
	shipped := d.start(taskserver.Caller{Revision: alice.Revision, CanAsk: alice.CanAsk}, "ship", `{}`)
	d.awaitState(taskserver.Caller{}, shipped, asks)
	wants(t, "the overview", d.get(""), ">render</a>", ">ship</a>", `>waiting</dt><dd>0</dd>`, `>running</dt><dd><a href="/console/tasks?state=running">1</a></dd>`, `>asking</dt><dd><a href="/console/tasks?state=asking">1</a></dd>`, ">failed in the last hour</dt><dd>0</dd>", ">approve</a>", "Ship &lt;b&gt;it&lt;/b&gt;?", "<h2 id=\"h-workers\">")
	lacks(t, "the overview without ends", d.get(""), `height="-`)
	list := d.get("tasks")
	wants(t, "the list", list, "render", "ship", "frame &lt;1&gt;", `<progress max="4" value="1"`, "anonymous", "owner ")
	render := d.get(d.pageOf("render"))
	wants(t, "the task", render, "frame &lt;1&gt;", "<strong>created</strong>", "<strong>started</strong>", "<strong>reported</strong>", "<code>"+id+"</code>")
	ship := d.get(d.pageOf("ship"))
	wants(t, "the task that asks", ship, shipped[:8]+"...", "Ship &lt;b&gt;it&lt;/b&gt;?", "Approve it?", "<strong>asked</strong> <span>approve</span>")
	for where, text := range map[string]string{"the list": list, "the page of render": render, "the page of ship": ship} {
		lacks(t, where, text, "alice", "hunter2", "a.mp4", shipped, "<form method=\"post\"", "name=\"principal\"")
	}
	lacks(t, "the list", list, id)
	wants(t, "the list", list, `<span class="asks">asks: Ship &lt;b&gt;it&lt;/b&gt;?</span>`)
	wants(t, "a page", ship, "Not signed in. You can only look. To step in here, set Options.Actions in the program.")
	if err := d.tasks.Operator("olga").Cancel(t.Context(), shipped); err != nil {
		t.Fatal(err)
	}
	lacks(t, "the list after the end", d.get("tasks?tool=ship"), "asks:", "<td class=\"ended not\">")
	d.finish <- struct{}{}
	d.awaitState(alice, id, isDone)
	wants(t, "the ended task", d.get(d.pageOf("render")), `>completed</span>`, "<strong>ended</strong> <span>completed</span>")
}

// TestStale shows the tasks of a tool that no server has.
func TestStale(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		d := openWith(t, store, console.Options{})
		now := d.tasks.Backend().Now()
		if _, err := store.Create(t.Context(), taskstore.Record{ID: "left", Tool: "gone", Phase: taskstore.PhaseQueued, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}, taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
		lacks(t, "the overview", d.get(""), "do not fit")
		time.Sleep(time.Minute)
		wants(t, "the overview", d.get(""), `<li>1 unfinished of <a href="/console/tasks?tool=gone&amp;state=unfinished">gone</a>: no server is known to have the tool</li>`)
	})
}

func TestFilter(t *testing.T) {
	d := open(t, console.Options{Reveal: true})
	bob := alice
	bob.Principal = "bob"
	for range 60 {
		d.awaitState(bob, d.start(bob, "ship", `{}`), asks)
	}
	id := d.start(alice, "render", `{}`)
	d.awaitState(alice, id, reports)
	row := `<th scope="row"`
	for query, want := range map[string]int{
		"": 50, "tool=render": 1, "state=running": 1, "text=frame": 1, "text=%3C1": 1, "task=" + id[:8]: 1, "task=" + id[:2] + "0": 0,
		"age=last+hour": 50, "age=older+than+an+hour": 0, "state=completed": 0, "state=failed&ended=last+hour": 0, "state=unfinished": 50, "tool=none": 0,
	} {
		if got := strings.Count(d.get("tasks?"+query), row); got != want {
			t.Errorf("%s: %d tasks, want %d", query, got, want)
		}
	}
	search := func(name, value string) (found string) {
		t.Helper()
		status, header, body := d.request(http.MethodPost, "tasks/search", url.Values{name: {value}})
		if status != http.StatusSeeOther {
			t.Fatalf("search for %s: HTTP %d\n%s", value, status, body)
		}
		location := header.Get("Location")
		lacks(t, "the address", location, "alice", id)
		return d.get(strings.TrimPrefix(location, "/console/"))
	}
	for value, want := range map[string]int{"alice@example.com": 1, "bob": 50, "mallory": 0} {
		found := search("principal", value)
		if got := strings.Count(found, row); got != want {
			t.Errorf("%s: %d tasks, want %d", value, got, want)
		}
	}
	for _, written := range []string{id, " " + id[:8] + "...", id[:12] + "…"} {
		if got := strings.Count(search("task", written), row); got != 1 {
			t.Errorf("%q: %d tasks", written, got)
		}
	}
	owner := regexp.MustCompile(`href="/console/(tasks\?owner=[^"]+)"`).FindStringSubmatch(d.get("tasks?tool=render"))
	if owner == nil || strings.Count(d.get(owner[1]), row) != 1 {
		t.Errorf("the tasks of an owner: %v", owner)
	}
	next := regexp.MustCompile(`href="/console/(tasks\?[^"]+)" rel="next"`).FindStringSubmatch(d.get("tasks"))
	if next == nil {
		t.Fatal("no link to older tasks")
	}
	if rest := strings.Count(d.get(strings.ReplaceAll(next[1], "&amp;", "&")), row); rest != 11 {
		t.Errorf("%d older tasks, want 11", rest)
	}
	// Longer beginnings would let a viewer find out the whole ID, which may be the key to a task.
	reference := strings.TrimPrefix(d.pageOf("render"), "tasks/")
	if got := strings.Count(d.get("tasks?task="+id[:8]+"0000"), row); got != 1 {
		t.Errorf("more than the page has of an ID counts: %d tasks", got)
	}
	if status, _, _ := d.request(http.MethodGet, "tasks?after="+reference+"0", nil); status != http.StatusNotFound {
		t.Errorf("a long place in the list: HTTP %d", status)
	}
	for _, lost := range []string{"\xff", " ... "} {
		if status, _, _ := d.request(http.MethodPost, "tasks/search", url.Values{"task": {lost}}); status != http.StatusNotFound {
			t.Errorf("the ID %q: HTTP %d", lost, status)
		}
	}
	for _, odd := range []string{"state=odd", "age=odd", "ended=odd", "owner=odd", "owner=" + strings.Repeat("A", 60), "after=odd"} {
		if status, _, body := d.request(http.MethodGet, "tasks?"+odd, nil); status != http.StatusBadRequest && status != http.StatusNotFound {
			t.Errorf("%s: HTTP %d\n%s", odd, status, body)
		}
	}
}

func TestActions(t *testing.T) {
	d := open(t, console.Options{Actions: true})
	id := d.start(alice, "ship", `{"file":"x"}`)
	d.awaitState(alice, id, asks)
	page := d.pageOf("ship")
	wants(t, "the form", d.get(page), `name="field 0"`, `<option value="&#34;small&#34;">small</option>`, `<option value="&#34;express&#34;">Tomorrow</option>`,
		`<option value="&#34;slow&#34;">slow</option>`, `<option value="2" selected>2</option>`, `<input type="checkbox" name="field 6" value="&#34;y&#34;">`, "Answer for the requestor",
		`<select name="field 0" required><option value="">choose</option><option value="true">yes</option>`, `<select name="field 1"><option value=""></option>`,
		`<input name="field 7" type="datetime-local" value="2026-01-02T01:04:05"`, "<small>in UTC</small>", `<input name="field 8" type="date" value=""`,
		`<input name="field 9" type="text" value="2026-01-02T03:04:05.5Z"`)
	act := func(action string, form url.Values, want int) string {
		t.Helper()
		status, header, body := d.request(http.MethodPost, page+"/"+action, form)
		if status != want {
			t.Errorf("%s: HTTP %d, want %d\n%s", action, status, want, body)
		}
		return body + header.Get("Location")
	}
	answer := func(values ...string) url.Values {
		form := url.Values{"key": {"approve"}, "action": {"accept"}}
		for i := 0; i < len(values); i += 2 {
			form.Set(values[i], values[i+1])
		}
		return form
	}
	wants(t, "a number that is none", act("answer", answer("field 0", "true", "field 2", "many", "field 3", "kept", "field 1", "huge"), 422),
		`Not done: the form does not fit: size: &#34;huge&#34; is none of the choices; boxes: &#34;many&#34; is not a whole number`,
		`value="kept"`, `value="many"`, `<option value="true" selected>yes</option>`)
	wants(t, "null, which is no number", act("answer", answer("field 0", "true", "field 2", "null"), 422), "Not done:", "boxes")
	wants(t, "an answer that is missing", act("answer", answer(), 422), "Not done:", "approve")
	for _, forged := range []url.Values{
		answer("field 6", ""), {"key": {"approve"}, "action": {"accept"}, "field 0": {"true"}, "field 6": {"", `"x"`, "2"}},
		{"key": {"approve"}, "action": {"accept"}, "field 0": {"true", "false"}}, answer("field 0", "maybe"), answer("action", "raw"), answer("action", "raw", "response", "{"),
	} {
		act("answer", forged, 422)
	}
	wants(t, "a question that is not asked", act("answer", answer("key", "other"), http.StatusConflict), "does not ask")
	act("answer", answer("field 0", "true", "field 1", `"large"`, "field 2", " +3 ", "field 3", "two\r\nlines", "field 4", `"express"`, "field 5", "2", "field 6", `"y"`,
		"field 7", "2026-12-24T18:00", "field 8", "2026-12-25", "field 9", "2026-12-24 18:00:01"),
		http.StatusSeeOther)
	record := d.awaitState(alice, id, isDone)
	wants(t, "the result", string(record.Outcome.Result), `\"approve\":true`, `\"size\":\"large\"`, `\"boxes\":3`, `\"speed\":\"express\"`, `\"days\":2`, `\"to\":[\"y\"]`)
	wants(t, "the result", string(record.Outcome.Result), `\"note\":\"two\\nlines\"`, `\"at\":\"2026-12-24T18:00:00Z\"`, `\"day\":\"2026-12-25\"`, `\"exact\":\"2026-12-24T18:00:01Z\"`)
	wants(t, "a late cancel", act("cancel", url.Values{}, http.StatusConflict), "Not done: the task has already ended")
	fresh := act("again", url.Values{}, http.StatusSeeOther)
	if !strings.HasPrefix(fresh, "/console/tasks/") || strings.HasSuffix(fresh, page) {
		t.Fatalf("it went on at %s", fresh)
	}
	page = strings.TrimPrefix(fresh, "/console/")
	act("cancel", url.Values{}, http.StatusSeeOther)
	wants(t, "the new task", d.get(page), `<span class="state cancelled"`, "<strong>ended</strong> <span>cancelled</span> <small>by local</small>", "<small>by local</small>")
	for _, action := range []string{"answer", "cancel", `"run again"`} {
		wants(t, "the audit trail", d.log.String(), "audit=operator action="+action+" operator=local")
	}
}

func TestReveal(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var viewer atomic.Pointer[console.Viewer] // open pages ask too
		use := func(name string, reveal bool) { viewer.Store(&console.Viewer{Name: name, Reveal: reveal}) }
		d := open(t, console.Options{Reveal: true, Authorize: func(*http.Request) (console.Viewer, error) { return *viewer.Load(), nil }})
		id := d.start(alice, "render", `{"file":"a.mp4","secret":"hunter2"}`)
		d.finish <- struct{}{}
		d.awaitState(alice, id, isDone)
		audited := func(want int, what string) {
			t.Helper()
			if got := strings.Count(d.log.String(), "action=reveal operator=ops "+what); got != want {
				t.Errorf("the audit trail has %q %d times, want %d:\n%s", what, got, want, d.log.String())
			}
		}
		ownersOfList, task := "what=owners principals=["+alice.Principal+"]", "task="+id+" tool=render principal=alice@example.com what="
		use("ops", false)
		page := d.pageOf("render")
		lacks(t, "the list and the page of a viewer who may not reveal", d.get("tasks")+d.get(page), "hunter2", "alice")
		audited(0, "")
		use("ops", true)
		wants(t, "the list", d.get("tasks"), ">alice@example.com</a>")
		audited(1, ownersOfList)
		audited(0, task)
		got := d.get(page)
		wants(t, "the page", got, "hunter2", ">alice@example.com</a>")
		lacks(t, "the page", got, "with hunter2")
		audited(1, task+`"arguments and principal"`)
		d.get("tasks")
		d.get(page)
		wants(t, "the live list", d.watch("tasks")(), "alice@example.com")
		wants(t, "the live page", d.watch(page)(), "alice@example.com")
		audited(1, ownersOfList)
		audited(1, task+`"arguments and principal"`)
		use("otto", true)
		d.get("tasks")
		wants(t, "the audit trail", d.log.String(), "action=reveal operator=otto "+ownersOfList)
		use("ops", true)
		time.Sleep(15 * time.Minute)
		d.get("tasks")
		d.get(page)
		audited(2, ownersOfList)
		audited(2, task+`"arguments and principal"`)
		for what, want := range map[string]string{"result": "with hunter2", "answers": `<pre tabindex="0" id="revealed"></pre>`} {
			for looks := range 2 {
				status, header, body := d.request(http.MethodPost, page+"/reveal", url.Values{"what": {what}})
				if status != http.StatusOK || header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s: HTTP %d, %v", what, status, header)
				}
				wants(t, what, body, want)
				audited(looks+1, task+what)
			}
		}
		d.request(http.MethodPost, "tasks/search", url.Values{"principal": {"bob"}})
		audited(1, `task="" tool="" principal=bob what="tasks of the principal"`)
		_, header, _ := d.request(http.MethodPost, "tasks/search", url.Values{"principal": {"carol"}})
		use("otto", true) // who gets the address
		wants(t, "the list of an owner without tasks", d.get(strings.TrimPrefix(header.Get("Location"), "/console/")), ">carol</option>")
		wants(t, "the audit trail", d.log.String(), "action=reveal operator=otto what=owners principals=[carol]")
		if status, _, _ := d.request(http.MethodPost, page+"/reveal", url.Values{"what": {"all"}}); status != http.StatusBadRequest {
			t.Errorf("an unknown thing: HTTP %d", status)
		}
	})
}

// unreadSteps is a store whose steps cannot be read while it is broken.
type unreadSteps struct {
	*brokenStore
	reads *atomic.Int32 // of values
}

func (s unreadSteps) Steps(ctx context.Context, id string) ([]taskstore.Step, error) {
	s.reads.Add(1)
	if s.broken.Load() {
		return nil, errUnread
	}
	return s.Store.Steps(ctx, id)
}

func (s unreadSteps) ListSteps(ctx context.Context, id string) ([]taskstore.StepSummary, error) {
	if s.broken.Load() {
		return nil, errUnread
	}
	return s.Inspector.ListSteps(ctx, id)
}

var errUnread = errors.New("user=root password=hunter2 at db.internal")

// TestAskedAnew checks that a question which is asked anew in another form does not show what was answered, which its
// schema has as defaults.
func TestAskedAnew(t *testing.T) {
	store := taskstore.NewMemory()
	policy := mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost}
	first, err := taskserver.New(taskserver.Options{Store: store}, mcptask.Tools{Service: "Studio", Impl: 1, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "ship", InputSchema: `{"type":"object"}`, Policy: policy}, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			_, err := mcptask.Ask[map[string]any](ctx, task, mcptask.InputSpec{Name: "Approval", Schema: `{"type":"object","properties":{"note":{"type":"string"}}}`}, "approve", "")
			<-ctx.Done()
			return "", errors.Join(err, ctx.Err())
		})}})
	if err != nil {
		t.Fatal(err)
	}
	before := &desk{t: t, tasks: first}
	id := before.start(alice, "ship", `{}`)
	before.awaitState(alice, id, asks)
	if err := first.Backend().Answer(t.Context(), alice, id, map[string]json.RawMessage{"approve": json.RawMessage(`{"action":"accept","content":{"note":"for my eyes only"}}`)}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	d := openWith(t, store, console.Options{Actions: true, Reveal: true, Authorize: func(*http.Request) (console.Viewer, error) { return console.Viewer{Name: "ops", Act: true}, nil }})
	r := d.awaitState(alice, id, asks)
	if asked := r.Outstanding()[0]; !strings.Contains(string(asked.Schema), "for my eyes only") {
		t.Fatalf("%+v", asked)
	}
	page := d.get(d.pageOf("ship"))
	wants(t, "the page", page, "approve~form2", "Approve it?")
	lacks(t, "the page", page, "for my eyes only")
}

// TestSteps looks at the steps of a task, reveals them, and looks at the task while they cannot be read.
func TestSteps(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := unreadSteps{newBrokenStore(), new(atomic.Int32)}
		d := openWith(t, store, console.Options{Reveal: true})
		now := d.tasks.Backend().Now()
		record, err := store.Create(t.Context(), taskstore.Record{ID: "stepper", Tool: "render", Principal: alice.Principal, Revision: alice.Revision, Phase: taskstore.PhaseDone,
			Outcome: &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}, CreatedAt: now, UpdatedAt: now, TerminalAt: now, ExpiresAt: now.Add(time.Hour)}, taskstore.Quota{})
		if err != nil {
			t.Fatal(err)
		}
		steps := []taskstore.Step{
			{Name: "up<load>", Kind: taskstore.StepDone, Value: json.RawMessage(`"hunter2"`), At: now.Add(time.Second), Attempt: 1},
			{Name: "row", Kind: taskstore.StepPosition, Value: json.RawMessage(strings.Repeat(" ", 2000) + "7"), At: now.Add(2 * time.Second), Attempt: 2},
			{Name: "cool down", Kind: taskstore.StepSleep, Value: json.RawMessage(`"2000-01-01T07:30:00Z"`), At: now.Add(3 * time.Second), Attempt: 3},
		}
		for n := range 200 {
			steps = append(steps, taskstore.Step{Name: fmt.Sprint("frame ", n), Kind: taskstore.StepDone, Value: json.RawMessage("1"), At: now, Attempt: 1})
		}
		to := record
		to.Nonce, to.Worked = "steps", 2*time.Hour+10*time.Minute+59*time.Second
		for i := range steps {
			to.StepBytes += steps[i].Size()
		}
		if _, err := store.Update(t.Context(), record, to, taskstore.Quota{}, steps...); err != nil {
			t.Fatal(err)
		}
		page := d.pageOf("render")
		got := d.get(page)
		row := func(name, kind, after, run, size string) string {
			return `<th scope="row">` + name + `</th><td>` + kind + `</td><td><time [^>]*>[^<]*</time></td><td>` + after + `</td><td>` + run + `</td><td>` + size + `</td></tr>`
		}
		for _, want := range []string{
			row("row", "saved position", "1 s", "2", "2.0 KiB") + `\s*<tr id="step-up&lt;load&gt;">` + row("up&lt;load&gt;", "result", "1 s", "1", "9 B"),
			row("cool down", "end of a sleep", "1 s", "3", "22 B"),
		} {
			if !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("no %s in\n%s", want, got)
			}
		}
		wants(t, "the page", got, "<summary>190 earlier steps</summary>", "3 still earlier ones are left out.", "<dt>worked</dt><dd>2 h 10 min</dd>")
		lacks(t, "the page", got, "hunter2", "07:30:00")
		if open, _, _ := strings.Cut(got, "<details id=\"folded\">"); strings.Count(open, `<tr id="step-`) != 10 || strings.Count(got, `<tr id="step-`) != 200 {
			t.Errorf("%d of %d steps are open", strings.Count(open, `<tr id="step-`), strings.Count(got, `<tr id="step-`))
		}
		if n := store.reads.Load(); n != 0 {
			t.Errorf("the page has read the values %d times", n)
		}
		_, _, revealed := d.request(http.MethodPost, page+"/reveal", url.Values{"what": {"steps"}})
		wants(t, "the revealed steps", revealed, "The newest 200: 3 earlier ones are left out.\ncool down: ", "up&lt;load&gt;: &#34;hunter2&#34;\n")
		wants(t, "the audit trail", d.log.String(), "action=reveal operator=local task=stepper tool=render principal=alice@example.com what=steps")
		next := d.watch(page)
		wants(t, "the first message", next(), "cool down")

		store.broken.Store(true)
		if status, _, got := d.request(http.MethodPost, page+"/reveal", url.Values{"what": {"steps"}}); status != http.StatusInternalServerError || strings.Contains(got, "db.internal") {
			t.Errorf("steps that cannot be read are revealed: HTTP %d, %s", status, got)
		}
		got = d.get(page)
		wants(t, "the page without steps", got, "The steps cannot be read", "<dt>worked</dt>", `id="timeline"`)
		lacks(t, "the page without steps", got, "db.internal", "cool down")
		wants(t, "the log", d.log.String(), "db.internal")
		next = d.watch(page)
		wants(t, "a stream without steps", next(), "cannot be read")
		store.broken.Store(false)
		wants(t, "the same stream", next(), "cool down")
	})
}

// TestRevealDeepValue checks that a deep value takes no more memory than a flat one when a viewer reveals it.
func TestRevealDeepValue(t *testing.T) {
	d := open(t, console.Options{Reveal: true})
	allocated := func(secret string) uint64 {
		id := d.start(alice, "render", `{"file":"a.mp4","unknown":`+secret+`}`)
		d.finish <- struct{}{}
		d.awaitState(alice, id, isDone)
		page := d.pageOf("render")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		body := d.get(page)
		runtime.ReadMemStats(&after)
		wants(t, "the page", body, "a.mp4")
		return after.TotalAlloc - before.TotalAlloc
	}
	leaves := "[1" + strings.Repeat(",1", 50_000) + "]"
	const depth = 900
	flat := allocated(leaves)
	deep := allocated(strings.Repeat(`{"a":`, depth) + leaves + strings.Repeat("}", depth))
	if deep > 4*flat+8<<20 {
		t.Errorf("a deep value allocates %d MiB, a flat one %d MiB", deep>>20, flat>>20)
	}
}

func TestRefusals(t *testing.T) {
	d := open(t, console.Options{})
	id := d.start(alice, "render", `{}`)
	d.awaitState(alice, id, reports)
	page := d.pageOf("render")
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(value string) func(*http.Request) { return func(r *http.Request) { r.Host = value } }
	for _, c := range []struct {
		name, method, below string
		form                url.Values
		change              func(*http.Request)
		status              int
	}{
		{"another host", http.MethodGet, "", nil, host("evil.example"), http.StatusForbidden},
		{"the own name", http.MethodGet, "", nil, host("localhost:80"), http.StatusOK},
		{"a proxy", http.MethodGet, "", nil, header("X-Forwarded-For", "203.0.113.7"), http.StatusForbidden},
		{"a proxy behind an empty header", http.MethodGet, "", nil, func(r *http.Request) {
			r.Header["X-Forwarded-For"] = []string{"", "203.0.113.7"}
		}, http.StatusForbidden},
		{"a proxy that tells only the port", http.MethodGet, "", nil, header("X-Forwarded-Port", "443"), http.StatusForbidden},
		{"another site", http.MethodPost, page + "/cancel", url.Values{}, header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"an image on another site", http.MethodGet, "tasks?text=x", nil, header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"a stream on another port", http.MethodGet, "events?view=overview", nil, header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		{"a link on another site", http.MethodGet, "", nil, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, http.StatusOK},
		{"a form without an origin", http.MethodPost, page + "/cancel", url.Values{}, func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "null")
		}, http.StatusForbidden},
		{"another origin", http.MethodPost, page + "/cancel", url.Values{}, func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "https://evil.example")
		}, http.StatusForbidden},
		{"an action", http.MethodPost, page + "/cancel", url.Values{}, nil, http.StatusForbidden},
		{"an answer", http.MethodPost, page + "/answer", url.Values{}, nil, http.StatusForbidden},
		{"a look", http.MethodPost, page + "/reveal", url.Values{"what": {"result"}}, nil, http.StatusForbidden},
		{"a look by GET", http.MethodGet, page + "/reveal?what=arguments", nil, nil, http.StatusSeeOther},
		{"an action on chosen tasks", http.MethodPost, "bulk", url.Values{"action": {"cancel"}, "task": {"x"}}, nil, http.StatusForbidden},
		{"the way back from one", http.MethodGet, "bulk", nil, nil, http.StatusSeeOther},
		{"a principal", http.MethodPost, "tasks/search", url.Values{"principal": {"alice"}}, nil, http.StatusForbidden},
		{"a strange task", http.MethodGet, "tasks/zzz-AAAAAAAA", nil, nil, http.StatusNotFound},
		{"no reference", http.MethodGet, "tasks/" + id, nil, nil, http.StatusNotFound},
		{"an empty prefix", http.MethodGet, strings.Split(page, "-")[0] + "-", nil, nil, http.StatusNotFound},
		{"a strange view", http.MethodGet, "events?view=odd", nil, nil, http.StatusNotFound},
		{"a strange path", http.MethodGet, "secrets", nil, nil, http.StatusNotFound},
	} {
		change := c.change
		if change == nil {
			change = func(*http.Request) {}
		}
		status, h, body := d.request(c.method, c.below, c.form, change)
		if status != c.status {
			t.Errorf("%s: HTTP %d, want %d\n%s", c.name, status, c.status, body)
		}
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: the headers are %v", c.name, h)
		}
	}
	if record, err := d.tasks.Backend().Get(t.Context(), alice, id); err != nil || record.Done() {
		t.Errorf("the task has changed: %v, %v", record.Phase, err)
	}
}

func TestAuthorize(t *testing.T) {
	options := console.Options{Path: "/ops/", Actions: true, Reveal: true, AllowedHosts: []string{"Ops.example"}}
	options.Authorize = func(r *http.Request) (console.Viewer, error) {
		switch name, _, _ := r.BasicAuth(); name {
		case "olga":
			return console.Viewer{Name: name, Act: true}, nil
		case "otto":
			return console.Viewer{Name: name}, nil
		case "nameless":
			return console.Viewer{Act: true, Reveal: true}, nil
		case "":
			return console.Viewer{}, console.Challenge(`Basic realm="tasks"`)
		}
		return console.Viewer{}, errors.New("who?")
	}
	d := open(t, options)
	d.url = strings.TrimSuffix(d.url, "console/") + "ops/"
	id := d.start(alice, "render", `{}`)
	as := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(name, "x"); r.Host = "ops.example" }
	}
	status, _, body := d.request(http.MethodGet, "tasks", nil, as("otto"))
	found := regexp.MustCompile(`href="/ops/(tasks/[^"]+)"`).FindStringSubmatch(body)
	if status != http.StatusOK || found == nil {
		t.Fatalf("HTTP %d\n%s", status, body)
	}
	wants(t, "the list", body, "Signed in as otto. You can only look. To step in, you need a name and Act from Options.Authorize.")
	for name, want := range map[string]int{"": http.StatusUnauthorized, "eve": http.StatusForbidden, "otto": http.StatusForbidden, "nameless": http.StatusForbidden, "olga": http.StatusSeeOther} {
		if status, _, body := d.request(http.MethodPost, found[1]+"/cancel", url.Values{}, as(name)); status != want {
			t.Errorf("%q: HTTP %d, want %d\n%s", name, status, want, body)
		}
	}
	if status, _, _ := d.request(http.MethodPost, found[1]+"/reveal", url.Values{"what": {"result"}}, as("olga")); status != http.StatusForbidden {
		t.Errorf("olga sees a result: HTTP %d", status)
	}
	d.awaitState(alice, id, isDone)
	wants(t, "the audit trail", d.log.String(), "action=cancel operator=olga", "console refused a request", " remote=127.0.0.1:", "path=/ops/tasks/")
	_, header, _ := d.request(http.MethodGet, "", nil, func(r *http.Request) { r.Host = "ops.example" })
	if got := header.Get("WWW-Authenticate"); got != `Basic realm="tasks"` {
		t.Errorf("the browser is asked for %q", got)
	}
	if status, header, _ := d.request(http.MethodGet, "style.css", nil, func(r *http.Request) { r.Host = "ops.example" }); status != http.StatusOK {
		t.Errorf("the style of the refusal: HTTP %d, %v", status, header)
	}
}

// TestSignIn checks that a browser which has sent no credentials yet is asked for them without a warning.
func TestSignIn(t *testing.T) {
	d := open(t, console.Options{Authorize: func(*http.Request) (console.Viewer, error) {
		return console.Viewer{}, console.Challenge(`Basic realm="tasks"`)
	}})
	ask := func(change func(*http.Request)) {
		t.Helper()
		if status, _, _ := d.request(http.MethodGet, "", nil, change); status != http.StatusUnauthorized {
			t.Errorf("HTTP %d", status)
		}
	}
	ask(func(*http.Request) {})
	lacks(t, "the log", d.log.String(), "refused")
	ask(func(r *http.Request) { r.SetBasicAuth("eve", "guess") })
	wants(t, "the log", d.log.String(), "console refused a request")
}

// TestRoot checks that a server which serves only the page leads to it.
func TestRoot(t *testing.T) {
	d := open(t, console.Options{})
	d.url = strings.TrimSuffix(d.url, "console/")
	if status, header, _ := d.request(http.MethodGet, "", nil); status != http.StatusSeeOther || header.Get("Location") != "/console/" {
		t.Errorf("HTTP %d to %q", status, header.Get("Location"))
	}
	if status, _, _ := d.request(http.MethodGet, "other", nil); status != http.StatusNotFound {
		t.Errorf("another path: HTTP %d", status)
	}
}

func TestNewRefuses(t *testing.T) {
	d := open(t, console.Options{})
	for _, path := range []string{"console", "/console", "console/", "/{x}/", "//", "//evil.example/", "/a/../b/", "/a//b/", "/\\evil.example/"} {
		if _, err := console.New(d.tasks, console.Options{Path: path}); err == nil {
			t.Errorf("%q was taken", path)
		}
	}
}

// TestLive reads the stream of a page while its task goes on.
func TestLive(t *testing.T) {
	d := open(t, console.Options{})
	id := d.start(alice, "render", `{}`)
	d.awaitState(alice, id, reports)
	next := d.watch(d.pageOf("render"))
	wants(t, "the first message", next(), "running")
	d.finish <- struct{}{}
	var seen strings.Builder
	for !strings.Contains(seen.String(), `state completed`) || !strings.Contains(seen.String(), `ended`) {
		message := next()
		if message == "" {
			t.Fatalf("the stream ends:\n%s", &seen)
		}
		seen.WriteString(message)
	}
}

// brokenStore is a store whose writes fail with an error that tells of the database.
type brokenStore struct {
	taskstore.Store
	taskstore.Inspector
	broken atomic.Bool
	away   atomic.Bool // for reads
}

func (s *brokenStore) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	if s.broken.Load() {
		return to, errors.New("user=root password=hunter2 at db.internal")
	}
	return s.Store.Update(ctx, from, to, quota, steps...)
}

// CountUnfinished panics once if the store is broken.
func (s *brokenStore) CountUnfinished(ctx context.Context) ([]taskstore.Count, error) {
	if s.broken.Swap(false) {
		panic("broken")
	}
	if s.away.Load() {
		return nil, errors.New("no connection")
	}
	return s.Inspector.CountUnfinished(ctx)
}

// newBrokenStore returns a store that works until it is broken.
func newBrokenStore() *brokenStore {
	memory := taskstore.NewMemory()
	return &brokenStore{Store: memory, Inspector: memory}
}

// watch opens the stream of a view. next returns its next message, or "" at its end.
func (d *desk) watch(view string) (next func() string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.url+"events?view="+url.QueryEscape(view), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	response, err := d.client.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
}

// TestLiveGoesOn breaks the store while viewers look, takes it away, and then forbids to look.
func TestLiveGoesOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := newBrokenStore()
		var isGone atomic.Bool
		d := openWith(t, store, console.Options{Authorize: func(*http.Request) (console.Viewer, error) {
			if isGone.Load() {
				return console.Viewer{}, errors.New("gone")
			}
			return console.Viewer{Name: "olga"}, nil
		}})
		first, second := d.watch("overview"), d.watch("overview")
		for _, next := range []func() string{first, second} {
			wants(t, "the first message", next(), `{"`, `"totals":`, `"workers":`)
		}
		store.broken.Store(true) // for the view that is made next
		d.start(alice, "render", `{}`)
		wants(t, "a stream after a panic", second(), `"totals":`)
		wants(t, "the other stream", first(), `"totals":`)
		wants(t, "the log", d.log.String(), "a live view of the console panicked")
		third := d.watch("tasks")
		store.away.Store(true) // the content of an open page grows old
		for second() != "" {
		}
		wants(t, "the log", d.log.String(), "console failed", "no connection")
		isGone.Store(true)
		for first() != "" || third() != "" {
		}
		wants(t, "the log", d.log.String(), "console refused a request")
	})
}

// TestProblemHidesTheStore cancels a task while the store is away.
func TestProblemHidesTheStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) { // the server tries again for ten seconds
		store := newBrokenStore()
		d := openWith(t, store, console.Options{Actions: true})
		d.awaitState(alice, d.start(alice, "render", `{}`), reports)
		page := d.pageOf("render")
		store.broken.Store(true)
		status, _, body := d.request(http.MethodPost, page+"/cancel", url.Values{})
		store.broken.Store(false)
		if status != http.StatusServiceUnavailable {
			t.Errorf("HTTP %d", status)
		}
		wants(t, "the page", body, "Not done: the store did not take it")
		lacks(t, "the page", body, "hunter2", "db.internal")
		wants(t, "the log", d.log.String(), "db.internal")
	})
}

// TestStreams opens as many streams as one viewer may, and all viewers, and one more.
func TestStreams(t *testing.T) {
	name := func(r *http.Request) string { name, _, _ := r.BasicAuth(); return name }
	d := open(t, console.Options{Authorize: func(r *http.Request) (console.Viewer, error) { return console.Viewer{Name: name(r)}, nil }})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := func(viewer string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"events?view=overview", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(viewer, "")
		response, err := d.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response.StatusCode
	}
	for n := range 16 {
		if code := stream("olga"); code != http.StatusOK {
			t.Fatalf("stream %d: HTTP %d", n, code)
		}
	}
	if code := stream("olga"); code != http.StatusServiceUnavailable {
		t.Errorf("one too many: HTTP %d", code)
	}
	for open := 16; open < 64; open++ {
		if code := stream(fmt.Sprint("viewer ", open/16)); code != http.StatusOK {
			t.Fatalf("stream %d, of another viewer: HTTP %d", open, code)
		}
	}
	if code := stream("otto"); code != http.StatusServiceUnavailable {
		t.Errorf("one too many for all: HTTP %d", code)
	}
}
