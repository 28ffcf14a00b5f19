package edgetest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestTenantCalledLocal checks that an authenticated user with the name of the client on a pipe is served like any
// other. In a store that a server on pipes uses too, the two do not see each other's tasks.
func TestTenantCalledLocal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		tasks, err := taskserver.New(taskserver.Options{Store: store, Limits: wiretest.NoPollLimits}, wiretest.EndlessTools())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tasks.Close() })
		pipe := wiretest.PipeTo(t, tasks, 100)
		pipe.Initialize()
		hidden := pipe.StartEndless()
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Store: store, Concurrency: 8}})
		owners := map[string]string{"local": "remote:local", "remote:local": "remote:remote:local", "localhost": "localhost"}
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			for user, owner := range owners {
				p := wiretest.NewPeer(t, url, revision, user)
				unknown := p.Task("tasks/get", "NOSUCHTASKNOSUCHTASKNOSUCH")
				for _, method := range []string{"tasks/get", "tasks/cancel"} {
					p.Task(method, hidden).Want(unknown.Status, wiretest.InvalidParams)
				}
				own := p.Create("raw", nil)
				p.Until(own, "completed")
				record, err := store.Get(t.Context(), own)
				if err != nil || record.Principal != owner {
					t.Errorf("the task of the user %q belongs to %q, want %q: %v", user, record.Principal, owner, err)
				}
				if revision == wiretest.LegacyRevision {
					if listed := wiretest.ListTasks(t, p); len(listed) != 1 || listed[0]["taskId"] != own {
						t.Errorf("%s lists %v, and has %s", user, listed, own)
					}
					p.Task("tasks/result", p.Create("ponder", map[string]any{"ms": 40_000})).OK() // meanwhile the principal is asked again
				}
			}
		}
		record, err := store.Get(t.Context(), hidden)
		if err != nil || record.Principal != "local" || record.Done() {
			t.Errorf("the task of the client on a pipe: %+v, %v", record, err)
		}
		pipe.Say(`{"jsonrpc":"2.0","id":"l","method":"tasks/list"}`)
		if m := pipe.NextMessage(); m.ID != "l" || strings.Count(m.Line, `"taskId"`) != 1 {
			t.Errorf("the list of the client on a pipe: %s", m.Line)
		}
		// The name brings no slots.
		p, other := wiretest.NewPeer(t, url, wiretest.ModernRevision, "local"), wiretest.NewPeer(t, url, wiretest.ModernRevision, "b")
		for range 8 {
			p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		}
		other.Until(other.Create("raw", nil), "completed")
	})
}

// TestAddresses checks that endless tasks of one address in several sessions do not make another address's task wait, and
// that no address is stored. Behind a proxy, a middleware that sets RemoteAddr tells the addresses apart.
func TestAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		readForwarded := func(next http.Handler, _ *mcp.Server) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.RemoteAddr = r.Header.Get("X-Forwarded-For")
				next.ServeHTTP(w, r)
			})
		}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Wrap: readForwarded, Options: taskserver.Options{Store: store}})
		accounts := map[string]bool{}
		peer := func(revision, address string) *wiretest.Peer {
			p := wiretest.NewUnopenedPeer(t, url, revision, "", wiretest.TasksExtension)
			p.Client.Transport = forwardedFor{p.Client.Transport, address}
			if revision != wiretest.ModernRevision {
				p.Caps = `{}`
				p.Initialize()
			}
			return p
		}
		create := func(p *wiretest.Peer, address, branch string) string {
			id := p.Create("run_pipeline", wiretest.PipelineArgs(branch))
			record, err := store.Get(t.Context(), id)
			if err != nil || strings.Contains(record.Account, address) || !strings.HasPrefix(record.Account, "address ") {
				t.Fatalf("the account %q of %s: %v", record.Account, address, err)
			}
			accounts[strings.Fields(record.Account)[1]] = true
			return id
		}
		for i := range 15 {
			address := fmt.Sprint("2001:db8:1:1::", i+1) // of one network
			revision := wiretest.LegacyRevision
			if i == 0 {
				revision = wiretest.ModernRevision
			}
			p := peer(revision, address)
			for range 6 {
				create(p, address, "endless")
			}
		}
		if len(accounts) != 1 {
			t.Errorf("one network has the accounts %v", accounts)
		}
		for _, address := range []string{"2001:db8:1:2::1", "192.0.2.1:4711", "192.0.2.2"} {
			for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
				p := peer(revision, address)
				p.Until(create(p, address, "main"), "completed")
			}
		}
		if len(accounts) != 4 {
			t.Errorf("four networks have the accounts %v", accounts)
		}
	})
}

// forwardedFor tells a server an address, as a proxy does.
type forwardedFor struct {
	http.RoundTripper
	address string
}

// RoundTrip implements http.RoundTripper.
func (f forwardedFor) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", f.address)
	return f.RoundTripper.RoundTrip(r)
}

// TestAddressesOfSessions checks that sessions of one address, which its streams keep open, leave room for those of another.
func TestAddressesOfSessions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		readForwarded := func(next http.Handler, _ *mcp.Server) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.RemoteAddr = r.Header.Get("X-Forwarded-For")
				next.ServeHTTP(w, r)
			})
		}
		options := taskserver.Options{Limits: taskserver.Limits{Anonymous: taskserver.Totals{Sessions: 8}}}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Wrap: readForwarded, Options: options})
		unopened := func(address string) *wiretest.Peer {
			p := wiretest.NewUnopenedPeer(t, url, wiretest.LegacyRevision, "", `{}`)
			p.Client.Transport = forwardedFor{p.Client.Transport, address}
			return p
		}
		open := func(address string) *wiretest.Peer {
			p := unopened(address)
			p.Initialize()
			p.OpenGet()
			return p
		}
		const most = 6
		var last *wiretest.Peer
		for range most {
			last = open("192.0.2.1")
		}
		r := unopened("192.0.2.1").Call("initialize", map[string]any{"protocolVersion": wiretest.LegacyRevision, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "x", "version": "1"}})
		if !strings.Contains(string(r.Body), fmt.Sprintf(`{"limit":"sessions","max":%d,"scope":"address"}`, most)) {
			t.Errorf("%s", r.Body)
		}
		for range 2 {
			open("192.0.2.2")
		}
		last.Status("DELETE", "")
		open("192.0.2.1")
	})
}
