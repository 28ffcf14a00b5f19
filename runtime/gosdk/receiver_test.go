package gosdk

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The client declares the requests that its options answer. It runs no other request as a task.
func TestReceiverDeclares(t *testing.T) {
	rules.Covers(t, "C-01", "C-02", "C-05", "C-06", "C-07", "C-21")
	checkReceiverDeclares(t, mcptask.Revision20251125)
}

func checkReceiverDeclares(t *testing.T, revision string) {
	t.Helper()
	const elicitation, sampling = `"elicitation":{"create":{}}`, `"sampling":{"createMessage":{}}`
	all := newPerson().options()
	for _, c := range []struct {
		name    string
		options ClientOptions
		want    string // capabilities.tasks
	}{
		{"all", all, `{"list":{},"cancel":{},"requests":{` + sampling + `,` + elicitation + `}}`},
		{"a person", ClientOptions{Answer: all.Answer}, `{"list":{},"cancel":{},"requests":{` + elicitation + `}}`},
		{"a browser", ClientOptions{OpenURL: func(context.Context, mcptask.Question) error { return nil }}, `{"list":{},"cancel":{},"requests":{` + elicitation + `}}`},
		{"a model", ClientOptions{Sample: all.Sample}, `{"list":{},"cancel":{},"requests":{` + sampling + `}}`},
		{"nothing that can be a task", ClientOptions{Roots: []mcptask.Root{{URI: "file:///a"}}}, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachWayIn(t, revision, func(o *ClientOptions) { *o = c.options }, func(t *testing.T, a *inquirer) {
				if tasks, extensions := a.declared(); tasks != c.want || !extensions {
					t.Errorf("declared %s, with extensions: %v", tasks, extensions)
				}
				for method, params := range map[string]string{"elicitation/create": elicit("now", ""), "sampling/createMessage": sample("now", ""), "roots/list": `{"_meta":{}}`} {
					augmented := a.ask(method, `{"task":{},`+strings.TrimPrefix(params, "{"))
					_, kind, _ := strings.Cut(method, "/")
					if strings.Contains(c.want, `"`+kind+`"`) && kind != "list" {
						if augmented.ok().text("task", "taskId") == "" {
							t.Errorf("%s is no task: %s", method, augmented.Result)
						}
						continue
					}
					if plain := a.ask(method, params); !reflect.DeepEqual(plain.get(), augmented.get()) || !reflect.DeepEqual(plain.Error, augmented.Error) {
						t.Errorf("%s: %s %v, as a task %s %v", method, plain.Result, plain.Error, augmented.Result, augmented.Error)
					}
				}
				if c.want != "" {
					a.ask("tasks/list", `{}`).ok()
					a.ask("tasks/delete", `{"taskId":"x"}`).want(mcptask.CodeMethodNotFound)
					return
				}
				if r := a.ask("roots/list", `{"task":{}}`).ok(); len(r.get("roots").([]any)) != 1 {
					t.Errorf("%s", r.Result)
				}
				a.ask("tasks/list", `{}`).want(mcptask.CodeMethodNotFound)
				a.ask("tasks/cancel", `{"taskId":"x"}`).want(mcptask.CodeMethodNotFound)
			})
		})
	}
}

// The client answers a request that asks for a task with the task, at once.
func TestReceiverCreates(t *testing.T) {
	rules.Covers(t, "C-15", "C-16", "C-17", "C-18", "C-19", "C-23", "C-24", "C-25")
	eachWayIn(t, mcptask.Revision20251125, nil, checkReceiverCreates)
}

func checkReceiverCreates(t *testing.T, a *inquirer) {
	ids := map[string]bool{}
	for method, params := range map[string]string{"elicitation/create": elicit("wait", ""), "sampling/createMessage": sample("wait", "")} {
		for _, task := range []string{`{}`, `{"ttl":90000}`, `{"ttl":0}`, `{"ttl":1e300}`, `{"taskId":"mine","ttl":60000}`} {
			r := a.ask(method, strings.TrimSuffix(params, "}")+`,"task":`+task+`,"_meta":{"taskId":"mine","progressToken":7,"io.modelcontextprotocol/related-task":{"taskId":"mine"}}}`).ok()
			id, ok := r.get("task", "taskId").(string)
			if !ok || len(id) < 26 || ids[id] {
				t.Errorf("the ID %q", id)
			}
			if names, _ := r.get().(map[string]any); len(names) != 2 || names["task"] == nil || r.text("_meta", "io.modelcontextprotocol/related-task", "taskId") != "mine" {
				t.Errorf("%s", r.Result)
			}
			ids[id] = true
			want := map[string]float64{`{"ttl":90000}`: 90000, `{"taskId":"mine","ttl":60000}`: 60000, `{"ttl":1e300}`: 30 * 24 * 3600 * 1000}[task]
			if want == 0 {
				want = 24 * 3600 * 1000
			}
			if ttl := r.get("task", "ttl"); ttl != want {
				t.Errorf("%s: ttl %v, want %v", task, ttl, want)
			}
		}
		for _, task := range []string{`null`, `7`, `[]`, `{"ttl":-1}`, `{"ttl":"1"}`, `{"ttl":1.5}`} {
			a.ask(method, strings.TrimSuffix(params, "}")+`,"task":`+task+`}`).want(mcptask.CodeInvalidParams)
		}
	}
	var many []string
	for range 50 {
		many = append(many, a.begin("elicitation/create", elicit("wait", `,"task":{}`)))
	}
	for _, request := range many {
		ids[a.reply(request).ok().text("task", "taskId")] = true
	}
	if len(ids) != 60 {
		t.Errorf("%d IDs of 60 tasks", len(ids))
	}
}

// A task is working until it ends, and does not change afterwards.
func TestReceiverTells(t *testing.T) {
	rules.Covers(t, "C-26", "C-54", "C-55", "C-57", "C-60", "C-63", "C-65", "C-66")
	eachWayIn(t, mcptask.Revision20251125, nil, checkReceiverTells)
}

func checkReceiverTells(t *testing.T, a *inquirer) {
	told := func(r reply, path ...string) (times []time.Time) {
		t.Helper()
		names := []string{"createdAt", "lastUpdatedAt"}
		if a.revision == mcptask.Revision20251125RC { // B-55
			names = names[:1]
		}
		for _, name := range names {
			at, err := time.Parse(time.RFC3339, r.text(append(path, name)...))
			if err != nil || time.Since(at).Abs() > time.Minute {
				t.Errorf("%s: %v %v", name, at, err)
			}
			times = append(times, at)
		}
		object, _ := r.get(path...).(map[string]any)
		_, updated := object["lastUpdatedAt"]
		if _, ok := object["ttl"]; !ok || object["taskId"] == "" || updated != (len(names) > 1) {
			t.Errorf("%v", object)
		}
		if r.get("_meta") != nil {
			t.Errorf("_meta: %s", r.Result)
		}
		return times
	}
	created := a.ask("elicitation/create", elicit("wait", `,"task":{"ttl":600000}`)).ok()
	told(created, "task")
	id, other := created.text("task", "taskId"), a.create("wait")
	if status := created.text("task", "status"); status != "working" {
		t.Errorf("created as %s", status)
	}
	lying := fmt.Sprintf(`{"taskId":%q,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}}}`, id, other)
	for _, params := range []string{lying, strings.Replace(lying, other, "NOSUCHTASK", 1), fmt.Sprintf(`{"taskId":%q,"_meta":{"io.modelcontextprotocol/related-task":7}}`, id)} {
		r := a.ask("tasks/get", params).ok()
		told(r)
		if r.text("taskId") != id || r.text("status") != "working" || r.get("ttl") != 600000.0 {
			t.Errorf("%s: %s", params, r.Result)
		}
	}
	if r := a.ask("tasks/cancel", lying).ok(); r.text("taskId") != id || r.text("status") != "cancelled" {
		t.Errorf("%s", r.Result)
	} else {
		told(r)
	}
	if status := a.task("tasks/get", other).text("status"); status != "working" {
		t.Errorf("the other is %s", status)
	}
	done := a.create("stubborn")
	time.Sleep(time.Second)
	close(a.person.release)
	a.status(done)
	first, second := a.task("tasks/get", done).ok(), a.task("tasks/get", done).ok()
	if times := told(first); len(times) > 1 && !times[1].After(times[0]) || string(first.Result) != string(second.Result) {
		t.Errorf("%s, then %s", first.Result, second.Result)
	}
	result := a.ask("tasks/result", strings.Replace(lying, id, done, 1)).ok()
	if result.text("_meta", "io.modelcontextprotocol/related-task", "taskId") != done || result.text("content", "text") != "to stubborn" {
		t.Errorf("%s", result.Result)
	}
}

// tasks/result returns the result or the error of the same request without a task, as soon as there is one.
func TestReceiverResults(t *testing.T) {
	rules.Covers(t, "C-36", "C-37", "C-38", "C-39", "C-40", "C-41", "C-83", "C-86")
	eachWayIn(t, mcptask.Revision20251125, nil, checkReceiverResults)
}

func checkReceiverResults(t *testing.T, a *inquirer) {
	for _, c := range []struct {
		method, params, status string
	}{
		{"elicitation/create", elicit("now", ``), "completed"},
		{"elicitation/create", elicit("decline", ``), "completed"},
		{"elicitation/create", elicit("fail", ``), "failed"},
		{"elicitation/create", elicit("much longer than the schema says", ``), "failed"},
		{"elicitation/create", `{"message":"nobody answers this","requestedSchema":{"type":"object","properties":{}}}`, "completed"},
		{"sampling/createMessage", sample("now", ``), "completed"},
		{"sampling/createMessage", sample("fail", ``), "failed"},
	} {
		plain := a.ask(c.method, c.params)
		id := a.ask(c.method, strings.TrimSuffix(c.params, "}")+`,"task":{}}`).ok().text("task", "taskId")
		result := a.task("tasks/result", id)
		a.wantStatus(id, c.status)
		if c.status == "failed" {
			code, message := result.Error.Code, a.task("tasks/get", id).text("statusMessage")
			if plain.Error.Code != code || message != result.Error.Message {
				t.Errorf("%s: %v, as a task %v, %s", c.params, plain.Error, result.Error, message)
			}
			continue
		}
		got, _ := result.ok().get().(map[string]any)
		if meta := fmt.Sprint(got["_meta"]); meta != "map[io.modelcontextprotocol/related-task:map[taskId:"+id+"]]" {
			t.Errorf("_meta: %s", meta)
		}
		delete(got, "_meta")
		if want := plain.ok().get(); !reflect.DeepEqual(want, any(got)) {
			t.Errorf("%s: %v, as a task %v", c.params, want, got)
		}
	}
	// A failure of the answerer becomes a mere internal error.
	id := a.create("panic")
	if r := a.task("tasks/result", id).want(mcptask.CodeInternalError); strings.Contains(r.Error.Message, "fainted") {
		t.Errorf("the error reveals %s", r.Error.Message)
	}
	// It blocks until there is a result. The client answers other requests meanwhile.
	waiting := a.create("wait")
	result := a.begin("tasks/result", fmt.Sprintf(`{"taskId":%q}`, waiting))
	for range 3 {
		if status := a.task("tasks/get", waiting).text("status"); status != "working" || a.replies(result) != 0 {
			t.Errorf("%s with %d results", status, a.replies(result))
		}
	}
	a.task("tasks/cancel", waiting).ok()
	a.reply(result).want(mcptask.CodeInternalError) // it has no result: T-25
	slow := a.create("wait")
	result = a.begin("tasks/result", fmt.Sprintf(`{"taskId":%q}`, slow))
	a.task("tasks/get", slow).ok()
	if a.replies(result) != 0 {
		t.Error("there was a result before the answer")
	}
	close(a.person.release)
	if r := a.reply(result).ok(); r.text("content", "text") != "to wait" || a.status(slow) != "completed" {
		t.Errorf("%s", r.Result)
	}
}

// The list has every task that can be read, a page at a time.
func TestReceiverLists(t *testing.T) {
	rules.Covers(t, "C-69", "C-70", "C-72", "C-82")
	eachWayIn(t, mcptask.Revision20251125, nil, checkReceiverLists)
}

func checkReceiverLists(t *testing.T, a *inquirer) {
	made := map[string]bool{}
	for i := range 2*taskserver.PageSize + 5 {
		made[a.create([]string{"now", "decline", "fail"}[i%3])] = true
	}
	pages, cursor := 0, ""
	listed := map[string]bool{}
	for {
		r := a.ask("tasks/list", `{`+cursor+`}`).ok()
		pages++
		for _, task := range r.get("tasks").([]any) {
			listed[task.(map[string]any)["taskId"].(string)] = true
		}
		next, more := r.get("nextCursor").(string)
		if !more {
			break
		}
		cursor = fmt.Sprintf(`"cursor":%q`, next)
		for _, bad := range []string{next + "A", next[1:], strings.ToLower(next)} {
			a.ask("tasks/list", fmt.Sprintf(`{"cursor":%q}`, bad)).want(mcptask.CodeInvalidParams)
		}
	}
	if pages != 3 || !reflect.DeepEqual(listed, made) {
		t.Errorf("%d pages with %d of %d tasks", pages, len(listed), len(made))
	}
	for _, bad := range []string{`{"cursor":"made up"}`, `{"cursor":""}`, `{"cursor":7}`, `[]`, `"x"`} {
		if r := a.ask("tasks/list", bad).want(mcptask.CodeInvalidParams); r.Result != nil {
			t.Errorf("%s: %s", bad, r.Result)
		}
	}
}

// After the server learns of a cancellation, the task does not change any more, and the person's prompt ends.
func TestReceiverCancels(t *testing.T) {
	rules.Covers(t, "C-29", "C-75", "C-76", "C-77", "C-78", "C-81")
	eachWayIn(t, mcptask.Revision20251125, oneAtATime, checkReceiverCancels)
}

// oneAtATime makes the client store a task's end before the next task begins.
func oneAtATime(o *ClientOptions) { o.Tasks.Concurrency = 1 }

func checkReceiverCancels(t *testing.T, a *inquirer) {
	p := a.person
	id := a.create("wait")
	<-p.begun
	if r := a.task("tasks/cancel", id).ok(); r.text("status") != "cancelled" {
		t.Errorf("%s", r.Result)
	}
	if cause := <-p.ended; !errors.Is(cause, mcptask.ErrCancelled) {
		t.Errorf("the prompt ended by %v", cause)
	}
	a.task("tasks/cancel", id).want(mcptask.CodeInvalidParams)

	stubborn := a.create("stubborn")
	<-p.begun
	a.task("tasks/cancel", stubborn).ok()
	close(p.release)
	// When this task begins, the stubborn one has returned.
	a.wantStatus(a.create("now"), "completed")
	a.wantStatus(stubborn, "cancelled")
	a.wantStatus(id, "cancelled")
	for question, status := range map[string]string{"now": "completed", "fail": "failed"} {
		done := a.create(question)
		a.wantStatus(done, status)
		a.task("tasks/cancel", done).want(mcptask.CodeInvalidParams)
		a.wantStatus(done, status)
	}
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		unknown := a.task(method, "NOSUCHTASKNOSUCHTASKNOSUCH").want(mcptask.CodeInvalidParams)
		for _, params := range []string{`{"taskId":""}`, `{"taskId":7}`, `{"taskId":null}`, `{}`, `[]`, `null`, `7`, ``, `{"task_id":"x"}`, `{"taskId":{"a":[]}}`} {
			if r := a.ask(method, params).want(mcptask.CodeInvalidParams); r.Result != nil || unknown.Result != nil {
				t.Errorf("%s %s: %s", method, params, r.Result)
			}
		}
	}
}

// A task is kept as long as it says, but no longer than the options allow. Then its prompt ends.
func TestReceiverForgets(t *testing.T) {
	rules.Covers(t, "C-56", "C-58", "C-74", "C-97")
	eachWayIn(t, mcptask.Revision20251125, atMostAMinute, checkReceiverForgets)
}

func atMostAMinute(o *ClientOptions) { o.Tasks.MaxTTL = time.Minute }

func checkReceiverForgets(t *testing.T, a *inquirer) {
	for wish, want := range map[string]float64{`{}`: 60000, `{"ttl":1000000}`: 60000, `{"ttl":5000}`: 5000} {
		if ttl := a.ask("elicitation/create", elicit("now", `,"task":`+wish)).ok().get("task", "ttl"); ttl != want {
			t.Errorf("%s: %v, want %v", wish, ttl, want)
		}
	}
	for ttl, seen := 600*time.Millisecond, false; !seen; ttl *= 2 { // until the test is fast enough to see the task working
		began := time.Now()
		request := a.begin("elicitation/create", elicit("wait", fmt.Sprintf(`,"task":{"ttl":%d}`, ttl.Milliseconds())))
		id := a.reply(request).ok().text("task", "taskId")
		// The request was answered, so it can no longer be cancelled.
		a.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + request + `}}`)
		status := a.task("tasks/get", id).text("status")
		if seen = time.Since(began) < ttl; seen && status != "working" {
			t.Errorf("%s", status)
		}
		if cause := <-a.person.ended; !errors.Is(cause, mcptask.ErrExpired) {
			t.Errorf("the prompt ended by %v", cause)
		}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			a.task(method, id).want(mcptask.CodeInvalidParams)
		}
	}
}
