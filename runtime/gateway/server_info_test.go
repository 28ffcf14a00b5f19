package gateway

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestServerInfoOfSlowMiddleware checks that a result waits only once for a server that does not say its name, and that a
// server that panics is asked again.
func TestServerInfoOfSlowMiddleware(t *testing.T) {
	for _, c := range []struct {
		name  string
		sdk   func(w http.ResponseWriter, stop <-chan struct{})
		waits time.Duration
		asked int32
		info  string
	}{
		{"at once", func(w http.ResponseWriter, _ <-chan struct{}) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n"}}}}`)
		}, 0, 1, `{"name":"n"}`},
		{"never", func(_ http.ResponseWriter, stop <-chan struct{}) { <-stop }, discoverPatience, 1, ""},
		{"panic", func(http.ResponseWriter, <-chan struct{}) { panic("the middleware fails") }, 0, 2, ""},
	} {
		bubble.Run(t, c.name, func(t *testing.T) {
			stop, asked := make(chan struct{}), atomic.Int32{}
			defer close(stop)
			g := New(Config{Server: newServer(t, taskserver.Options{}).Backend(), Stateless: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				c.sdk(w, stop)
			})})
			body := `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{` + taskMeta + `}}`
			m, refusal := parseMessage([]byte(body))
			if refusal != nil {
				t.Fatal(refusal)
			}
			x := &httpExchange{g: g, r: newRequest(t.Context(), http.MethodPost, body), m: m}
			began := time.Now()
			for range 2 {
				if info := g.findServerInfo(t.Context(), x); string(info) != c.info {
					t.Errorf("got %s, want %s", info, c.info)
				}
			}
			if waited := time.Since(began); waited != c.waits || asked.Load() != c.asked {
				t.Errorf("two results waited for %v and asked %d times, want %v and %d", waited, asked.Load(), c.waits, c.asked)
			}
			if strings.Contains(string(g.nameServer(t.Context(), x, []byte(`{}`))), "serverInfo") != (c.info != "") {
				t.Error("the result does not have the name that the server says")
			}
		})
	}
}
