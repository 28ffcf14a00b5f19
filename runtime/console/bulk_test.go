package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/console"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// choose returns the form that acts on the tasks with the IDs.
func (d *desk) choose(action string, ids ...string) url.Values {
	d.t.Helper()
	form := url.Values{"action": {action}, "list": {"tool=render"}}
	all := regexp.MustCompile(`name="task" value="([^"]+)"`).FindAllStringSubmatch(d.get("tasks"), -1)
	for _, id := range ids {
		for _, box := range all {
			if strings.HasSuffix(box[1], "-"+id[:8]) {
				form.Add("task", box[1])
			}
		}
	}
	if len(form["task"]) != len(ids) {
		d.t.Fatalf("the list has %v", all)
	}
	return form
}

func TestBulk(t *testing.T) {
	d := open(t, console.Options{Actions: true})
	first, second, third := d.start(alice, "render", `{}`), d.start(alice, "render", `{}`), d.start(alice, "render", `{}`)
	for _, id := range []string{first, second, third} {
		d.awaitState(alice, id, reports)
	}
	act := func(form url.Values, want int) (location, body string) {
		t.Helper()
		status, header, body := d.request(http.MethodPost, "bulk", form)
		if status != want {
			t.Fatalf("HTTP %d, want %d:\n%s", status, want, body)
		}
		return strings.TrimPrefix(header.Get("Location"), "/console/"), body
	}
	isUnfinished := func(id string) bool {
		t.Helper()
		record, err := d.tasks.Backend().Get(t.Context(), alice, id)
		if err != nil {
			t.Fatal(err)
		}
		return !record.Done()
	}
	back, _ := act(d.choose("cancel", first, second), http.StatusSeeOther)
	if isUnfinished(first) || isUnfinished(second) || !isUnfinished(third) {
		t.Error("other tasks are cancelled than were chosen")
	}
	list := d.get(back)
	wants(t, "the list", list, "2 tasks cancelled.", `<option selected>render</option>`)
	_, body := act(d.choose("cancel", second, third), http.StatusConflict)
	wants(t, "the list of what was not done", body, "1 of 2 tasks cancelled.", "<li>"+second[:8]+": the task has already ended</li>", `<option selected>render</option>`)
	if isUnfinished(third) {
		t.Error("a refusal held up the next task")
	}
	back, _ = act(d.choose("again", first, third), http.StatusSeeOther)
	list = d.get(back)
	wants(t, "the list", list, "2 tasks run again, as new tasks.")
	if n := strings.Count(list, `aria-label="choose render`); n != 5 {
		t.Errorf("there are %d tasks", n)
	}
	for action, want := range map[string]int{"cancel": 3, `"run again"`: 2} {
		if got := strings.Count(d.log.String(), "audit=operator action="+action+" operator=local"); got != want {
			t.Errorf("the audit trail has %s %d times, want %d", action, got, want)
		}
	}
	gone := d.choose("cancel", first)
	gone.Set("task", "zzz-GONEGONE")
	_, body = act(gone, http.StatusNotFound)
	wants(t, "the list of what is not there", body, "GONEGONE: there is no such task")
	lacks(t, "the list of what is not there", body, "0 tasks")
	many := d.choose("cancel", first)
	for range 50 {
		many.Add("task", many.Get("task"))
	}
	act(many, http.StatusBadRequest)
	act(d.choose("cancel"), http.StatusBadRequest)
	act(d.choose("delete", first), http.StatusBadRequest)
	lacks(t, "a list after a strange action", d.get("tasks?did=delete&count=3"), `class="done"`)
}

// TestBulkStops checks that an action on many tasks does not wait for a store that is away once for each.
func TestBulkStops(t *testing.T) {
	bubble.Test(t, func(t *testing.T) { // the server tries again for ten seconds
		store := newBrokenStore()
		d := openWith(t, store, console.Options{Actions: true})
		var ids []string
		for range 3 {
			ids = append(ids, d.start(alice, "render", `{}`))
			d.awaitState(alice, ids[len(ids)-1], reports)
		}
		form := d.choose("cancel", ids...)
		store.broken.Store(true)
		status, _, body := d.request(http.MethodPost, "bulk", form)
		store.broken.Store(false)
		if status != http.StatusServiceUnavailable {
			t.Errorf("HTTP %d", status)
		}
		wants(t, "the page", body, ids[0][:8]+": the store did not take it", "2 more were not tried")
		lacks(t, "the page", body, "db.internal")
	})
}

// TestMayNotChoose checks that a list has nothing to choose for a viewer who only looks.
func TestMayNotChoose(t *testing.T) {
	d := open(t, console.Options{})
	d.awaitState(alice, d.start(alice, "render", `{}`), func(r taskstore.Record) bool { return r.Phase == taskstore.PhaseRunning })
	lacks(t, "the list", d.get("tasks"), "checkbox", "bulk")
}
