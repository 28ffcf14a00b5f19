package console_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/console"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// plant stores a task.
func (d *desk) plant(store taskstore.Store, id string, change func(*taskstore.Record)) {
	d.t.Helper()
	now := d.tasks.Backend().Now()
	r := taskstore.Record{ID: id, Tool: "render", Revision: alice.Revision, Phase: taskstore.PhaseRunning, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(24 * time.Hour), Attempt: 1, Tries: 1}
	change(&r)
	if _, err := store.Create(d.t.Context(), r, taskstore.Quota{}); err != nil {
		d.t.Fatal(err)
	}
}

// TestFailures counts the tasks that failed lately, as another process has stored them.
func TestFailures(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		d := openWith(t, store, console.Options{})
		fail := func(ago time.Duration, outcome taskstore.Outcome) func(*taskstore.Record) {
			return func(r *taskstore.Record) {
				r.Phase, r.Outcome, r.TerminalAt = taskstore.PhaseDone, &outcome, r.CreatedAt.Add(-ago)
				r.CreatedAt = r.CreatedAt.Add(-3 * time.Hour)
			}
		}
		lacks(t, "the overview", d.get(""), "state=failed", "alarm")
		d.plant(store, "toolerror", fail(time.Minute, taskstore.Outcome{Kind: taskstore.OutcomeResult, IsError: true}))
		d.plant(store, "wireerror", fail(59*time.Minute, taskstore.Outcome{Kind: taskstore.OutcomeError, Error: &mcptask.Error{Code: -1}}))
		d.plant(store, "longagoes", fail(61*time.Minute, taskstore.Outcome{Kind: taskstore.OutcomeError, Error: &mcptask.Error{Code: -1}}))
		d.plant(store, "cancelled", fail(time.Minute, taskstore.Outcome{Kind: taskstore.OutcomeCancelled}))
		d.plant(store, "completed", fail(time.Minute, taskstore.Outcome{Kind: taskstore.OutcomeResult}))
		wants(t, "the overview", d.get(""), `<a href="/console/tasks?state=failed&amp;ended=last+hour">2</a>`,
			`<a class="failures" href="/console/tasks?tool=render&amp;state=failed&amp;ended=last+hour">2</a>`)
		list := d.get("tasks?state=failed&ended=last+hour")
		wants(t, "the list", list, "<code>toolerro</code>", "<code>wireerro</code>")
		wants(t, "the list", list, `<td class="ended"><time class="ago"`)
		lacks(t, "the list", list, "longagoe", "cancelle</code>", "complete</code>")
		wants(t, "all that failed", d.get("tasks?state=failed"), "<code>toolerro</code>", "<code>longagoe</code>")
		for n := range taskstore.MaxCountFailed {
			d.plant(store, fmt.Sprint("many", n), fail(time.Minute, taskstore.Outcome{Kind: taskstore.OutcomeResult, IsError: true}))
		}
		wants(t, "the overview", d.get(""), "ended=last+hour\">1000+</a>")
	})
}

// TestEndsSince checks that the chart says since when this process counts.
func TestEndsSince(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := open(t, console.Options{})
		time.Sleep(12*time.Minute + time.Second)
		wants(t, "the overview", d.get(""), "<dt>ended since this process began, 12 min ago</dt>")
		time.Sleep(time.Hour)
		wants(t, "the overview", d.get(""), "ended in the last hour</dt>")
	})
}

// TestNeverTasks keeps the tools that are never tasks out of the table.
func TestNeverTasks(t *testing.T) {
	d := open(t, console.Options{})
	if err := d.tasks.Register(mcptask.Tools{Service: "Search", Impl: d, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "search", InputSchema: `{"type":"object"}`}, find),
		mcptask.NewTool(mcptask.ToolSpec{Name: "look_up", InputSchema: `{"type":"object"}`}, find),
	}}); err != nil {
		t.Fatal(err)
	}
	page := d.get("")
	wants(t, "the overview", page, "Never run as tasks: look_up, search.")
	lacks(t, "the overview", page, "tool-search")
}

// TestWorkers looks at a worker that is late, and at its task before and after its lease ends.
func TestWorkers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		d := openWith(t, store, console.Options{})
		const dead = "4711@web-2@Q7ZK3M5TA2BC"
		if _, err := store.Beat(t.Context(), dead, 30*time.Second, nil); err != nil {
			t.Fatal(err)
		}
		d.plant(store, "unlucky", func(r *taskstore.Record) {
			r.Tool = "gone" // so that this server leaves it as it is
			r.Claim = taskstore.Claim{Worker: dead, State: taskstore.ClaimRunning}
			r.Timeline = r.Timeline.With(taskstore.Moment{Kind: taskstore.EventStarted, At: r.CreatedAt, Attempt: 1, Text: taskserver.DescribeWorker(dead)})
		})
		d.plant(store, "inline", func(r *taskstore.Record) { r.Phase, r.Attempt, r.Tool = taskstore.PhaseQueued, 0, "gone" })
		page := d.pageOf("gone") // of the first in the list
		if !strings.HasSuffix(page, "unlucky") {
			page = "tasks/" + strings.Split(strings.TrimPrefix(page, "tasks/"), "-")[0] + "-unlucky"
		}
		overview := d.get("")
		wants(t, "the overview", overview, `<th scope="row" class="worker" title="`+dead+`">web-2, pid 4711</th>`, d.describeProcess())
		lacks(t, "the overview", overview, ">late<")
		list := d.get("tasks?tool=gone")
		wants(t, "the list", list, `<td class="run">in line</td>`, ">waiting</span>", ">running</span>")
		lacks(t, "the page", d.get(page), "Its worker")
		next := d.watch(page)
		next()
		time.Sleep(20 * time.Second)
		wants(t, "the overview", d.get(""), `web-2, pid 4711 <span class="state late"`)
		wants(t, "the page", d.get(page), "Its worker is late: the last beat of web-2, pid 4711 was <time")
		wants(t, "the live page", next(), "Its worker is late: the last beat of web-2, pid 4711")
		time.Sleep(20 * time.Second)
		lacks(t, "the overview", d.get(""), "web-2")
		wants(t, "the list", d.get("tasks?tool=gone"), ">lost</span>")
		wants(t, "the page", d.get(page), ">lost</span>", "Its worker is lost: web-2, pid 4711 has no lease any more. Next, a server that has the tool decides")
		wants(t, "the live page", next(), "Its worker is lost")
	})
}

// TestYoungWorker looks at a task whose worker has begun since a viewer last saw the workers.
func TestYoungWorker(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		d := openWith(t, store, console.Options{})
		wants(t, "the overview", d.get(""), d.describeProcess())
		const young = "4711@web-2@Q7ZK3M5TA2BC"
		if _, err := store.Beat(t.Context(), young, 30*time.Second, nil); err != nil {
			t.Fatal(err)
		}
		d.plant(store, "lucky", func(r *taskstore.Record) {
			r.Tool, r.Claim = "gone", taskstore.Claim{Worker: young, State: taskstore.ClaimRunning}
		})
		lacks(t, "the list", d.get("tasks?tool=gone"), ">lost</span>")
		lacks(t, "the page", d.get(d.pageOf("gone")), "Its worker")
	})
}

// TestLostTasks counts and lists tasks whose worker was lost: those that no worker has found yet, and those that wait for
// their next run.
func TestLostTasks(t *testing.T) {
	store := taskstore.NewMemory()
	d := openWith(t, store, console.Options{})
	const alive = "4712@web-1@Q7ZK3M5TA2BC"
	if _, err := store.Beat(t.Context(), alive, time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	lacks(t, "the overview", d.get(""), "state=lost", ">lost<")
	for id, claim := range map[string]struct {
		phase  taskstore.Phase
		worker string
	}{
		"fresh": {taskstore.PhaseQueued, ""}, "backin": {taskstore.PhaseRunning, ""}, "busy": {taskstore.PhaseRunning, alive}, "gone1": {taskstore.PhaseRunning, "dead"},
		"gone2": {taskstore.PhaseInputRequired, "dead"}, "askline": {taskstore.PhaseInputRequired, ""}, "asks": {taskstore.PhaseInputRequired, alive},
	} {
		d.plant(store, id, func(r *taskstore.Record) {
			r.Tool, r.Phase, r.Claim.Worker = "gone", claim.phase, claim.worker // so that this server leaves it as it is
			if claim.worker != "" {
				r.Claim.State = taskstore.ClaimRunning
			}
		})
	}
	overview := d.get("")
	for state, want := range map[string]int{"waiting": 2, "running": 1, "asking": 2, "lost": 2} {
		wants(t, "the overview", overview, fmt.Sprintf(`<a href="/console/tasks?state=%s">%d</a>`, state, want), fmt.Sprintf(`href="/console/tasks?tool=gone&amp;state=%s">%d</a>`, state, want))
		list := d.get("tasks?state=" + state)
		if rows, badges := strings.Count(list, `<th scope="row"`), strings.Count(list, `>`+state+`</span>`); rows != want || badges != want {
			t.Errorf("%d tasks are listed as %s, and %d have that state, want %d", rows, state, badges, want)
		}
	}
	if at := strings.Index(overview, "in line or lost: no worker"); at < strings.LastIndex(overview, `class="worker" title=`) {
		t.Errorf("that no worker has a task stands between the workers:\n%s", overview)
	}
}

// TestLost looks at the timelines of tasks that have lost their workers.
func TestLost(t *testing.T) {
	store := taskstore.NewMemory()
	d := openWith(t, store, console.Options{})
	plant := func(id string, moments ...taskstore.Moment) {
		t.Helper()
		d.plant(store, id, func(r *taskstore.Record) {
			r.Tool, r.Phase, r.Outcome, r.Attempt = id, taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}, 2
			for _, m := range moments {
				m.At = r.CreatedAt
				r.Timeline = r.Timeline.With(m)
			}
		})
	}
	lost := taskstore.Moment{Kind: taskstore.EventLost, Attempt: 1, Text: "web-2, pid 4711"}
	plant("goes_on", lost, taskstore.Moment{Kind: taskstore.EventStarted, Attempt: 2})
	plant("fails", lost, taskstore.Moment{Kind: taskstore.EventEnded, Attempt: 2, Text: "error"})
	plant("waits", taskstore.Moment{Kind: taskstore.EventLost, Attempt: 1}) // as former versions have stored it
	for tool, want := range map[string]string{
		"goes_on": "web-2, pid 4711 died or was cut off; run 2 has followed", "fails": "web-2, pid 4711 died or was cut off; the task has ended as failed",
		"waits": "its worker died or was cut off; another run is to follow",
	} {
		wants(t, "the timeline of "+tool, d.get(d.pageOf(tool)), "<strong>lost</strong> <span>"+want+"</span> <small>run 1</small>")
	}
}

// describeProcess returns how the page names this process.
func (d *desk) describeProcess() string {
	d.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		d.t.Fatal(err)
	}
	return fmt.Sprint(host, ", pid ", os.Getpid())
}

func find(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil }

// TestServerName looks at the head of pages with and without a name that the program has chosen.
func TestServerName(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, console.Options{Name: "shop, <staging>"})
	wants(t, "the overview", d.get(""), "<title>Overview · shop, &lt;staging&gt; · "+host+"</title>", "<strong>shop, &lt;staging&gt;</strong>", "<span>on "+host+"</span>")
	id := d.start(alice, "render", `{}`)
	d.awaitState(alice, id, reports)
	wants(t, "the page of a task", d.get(d.pageOf("render")), "<title>render "+id[:8]+" · shop, ", "<h1>render "+id[:8]+"</h1>")
	wants(t, "the list of a nameless server", open(t, console.Options{}).get("tasks"), "<title>Tasks · console.test · "+host+"</title>")
	_, _, refusal := d.request(http.MethodGet, "", nil, func(r *http.Request) { r.Host = "other.example" })
	wants(t, "what a stranger sees", refusal, "<title>Forbidden</title>")
	lacks(t, "what a stranger sees", refusal, "shop", host+"<")
}

// TestOwnersOnTheNextPage checks that the audit trail has the owners of a page of the list, and not those of the next.
func TestOwnersOnTheNextPage(t *testing.T) {
	store := taskstore.NewMemory()
	d := openWith(t, store, console.Options{Reveal: true})
	for i := range 51 {
		d.plant(store, fmt.Sprintf("task%02d", i), func(r *taskstore.Record) {
			r.Tool, r.CreatedAt, r.Principal = "gone", r.CreatedAt.Add(-time.Duration(i)*time.Minute), "carol" // so that this server leaves it as it is
			if i == 50 {
				r.Principal = "dave"
			}
		})
	}
	list := d.get("tasks")
	wants(t, "the list", list, ">carol</a>", "after=")
	lacks(t, "the list", list, "dave")
	wants(t, "the audit trail", d.log.String(), "what=owners principals=[carol]")
	lacks(t, "the audit trail", d.log.String(), "principals=[carol dave]")
}
