package gateway

import (
	"fmt"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// openAll opens what callers have at once until each is refused for the first time, and returns how
// many are open, and the last refusal.
func openAll(callers []mcptask.Caller, open func(mcptask.Caller) (func(), *mcptask.Error)) (n int, last *mcptask.Error, done []func()) {
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

// Sessions cost nothing, and open as many calls and waiting requests together as all anonymous
// callers may have.
func TestSessionsDoNotMultiplyOpenRequests(t *testing.T) {
	const most = 3
	server, err := mcptask.NewServer(mcptask.Options{Limits: mcptask.Limits{Running: most, Waiting: most}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	g := New(Config{Server: server})
	var sessions []mcptask.Caller
	for i := range 100 {
		sessions = append(sessions, mcptask.Caller{Session: fmt.Sprint(i)})
	}
	for name, open := range map[string]func(mcptask.Caller) (func(), *mcptask.Error){
		"running": func(caller mcptask.Caller) (func(), *mcptask.Error) { return countCall(server, caller, "t", nil, nil) },
		"waiting": g.countWaiting,
	} {
		for range 2 { // what is done makes room
			n, last, done := openAll(sessions, open)
			if want := fmt.Sprintf(`{"limit":%q,"max":%d,"scope":"anonymous"}`, name, 4*most); n != 4*most || string(last.Data) != want {
				t.Errorf("%s: %d are open, and then %s", name, n, last.Data)
			}
			n, last, others := openAll([]mcptask.Caller{{Principal: "p"}}, open)
			if want := fmt.Sprintf(`{"limit":%q,"max":%d}`, name, most); n != most || string(last.Data) != want {
				t.Errorf("%s: a principal has %d open, and then %s", name, n, last.Data)
			}
			for _, free := range append(done, others...) {
				free()
			}
		}
	}
}

// However many accounts there are, the whole server has no more open than it may have.
func TestOpenRequestsOfTheServer(t *testing.T) {
	server, err := mcptask.NewServer(mcptask.Options{Limits: mcptask.Limits{Server: mcptask.Totals{Running: 5, Waiting: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	g := New(Config{Server: server})
	for name, open := range map[string]func(mcptask.Caller) (func(), *mcptask.Error){
		"running": func(caller mcptask.Caller) (func(), *mcptask.Error) { return countCall(server, caller, "t", nil, nil) },
		"waiting": g.countWaiting,
	} {
		n, last, done := openAll([]mcptask.Caller{{Principal: "p"}, {Principal: "q"}, {}}, open)
		if want := fmt.Sprintf(`{"limit":%q,"max":5,"scope":"server"}`, name); n != 5 || string(last.Data) != want {
			t.Errorf("%s: %d are open, and then %s", name, n, last.Data)
		}
		for _, free := range done {
			free()
		}
	}
}
