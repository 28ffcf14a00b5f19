package gateway

import (
	"fmt"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// openAll opens requests of each caller until the first refusal. It returns how many are open, the
// last refusal, and what ends them.
func openAll(callers []taskserver.Caller, open func(taskserver.Caller) (func(), *mcptask.Error)) (n int, last *mcptask.Error, done []func()) {
	for _, caller := range callers {
		for {
			free, refusal := open(caller)
			if refusal != nil {
				last = refusal
				break
			}
			done = append(done, free)
			n++
		}
	}
	return n, last, done
}

// limitedGateway returns a gateway with limits, and what opens each kind of request that stays open.
func limitedGateway(t *testing.T, limits taskserver.Limits) map[string]func(taskserver.Caller) (func(), *mcptask.Error) {
	t.Helper()
	server := newServer(t, taskserver.Options{Limits: limits})
	return map[string]func(taskserver.Caller) (func(), *mcptask.Error){
		"running": func(caller taskserver.Caller) (func(), *mcptask.Error) {
			return countCall(t.Context(), server.Backend(), caller, "t", nil, nil)
		},
		"waiting": func(caller taskserver.Caller) (func(), *mcptask.Error) {
			return New(Config{Server: server.Backend()}).countWaiting(t.Context(), caller)
		},
	}
}

// TestSessionsDoNotMultiplyOpenRequests checks that anonymous callers have no more calls and waiting
// requests open together than all of them may have, however many sessions they open.
func TestSessionsDoNotMultiplyOpenRequests(t *testing.T) {
	const most = 3
	var sessions []taskserver.Caller
	for i := range 100 {
		sessions = append(sessions, taskserver.Caller{Session: fmt.Sprint(i)})
	}
	for name, open := range limitedGateway(t, taskserver.Limits{Running: most, Waiting: most}) {
		for range 2 { // the requests that are done make room
			n, last, done := openAll(sessions, open)
			if want := fmt.Sprintf(`{"limit":%q,"max":%d,"scope":"anonymous"}`, name, 4*most); n != 4*most || string(last.Data) != want {
				t.Errorf("%s: %d are open, and then %s", name, n, last.Data)
			}
			n, last, others := openAll([]taskserver.Caller{{Principal: "p"}}, open)
			if want := fmt.Sprintf(`{"limit":%q,"max":%d}`, name, most); n != most || string(last.Data) != want {
				t.Errorf("%s: a principal has %d open, and then %s", name, n, last.Data)
			}
			for _, free := range append(done, others...) {
				free()
			}
		}
	}
}

// TestOpenRequestsOfTheServer checks that the whole server has no more requests open than it may
// have, however many accounts there are.
func TestOpenRequestsOfTheServer(t *testing.T) {
	for name, open := range limitedGateway(t, taskserver.Limits{Server: taskserver.Totals{Running: 5, Waiting: 5}}) {
		n, last, _ := openAll([]taskserver.Caller{{Principal: "p"}, {Principal: "q"}, {}}, open)
		if want := fmt.Sprintf(`{"limit":%q,"max":5,"scope":"server"}`, name); n != 5 || string(last.Data) != want {
			t.Errorf("%s: %d are open, and then %s", name, n, last.Data)
		}
	}
}
