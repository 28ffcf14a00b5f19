package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestKeepAlive checks that an idle subscription shows that it is alive.
func TestKeepAlive(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newBufferedResponse()
		out := newSharedResponse(w)
		out.open()
		time.Sleep(3*keepAlive + time.Second)
		out.end()
		time.Sleep(keepAlive)
		if n := strings.Count(w.body.String(), ": waiting\n\n"); n != 3 {
			t.Errorf("%d comments in %q", n, w.body.String())
		}
	})
}

// TestKeepAliveMerged checks the same of a subscription that the SDK serves too, even if none of its
// tasks is the caller's.
func TestKeepAliveMerged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		sdk := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(`data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}` + "\n\n"))
			<-r.Context().Done()
		})
		g := New(Config{Server: askingServer(t).Backend(), Stateless: sdk})
		ctx, cancel := context.WithTimeout(t.Context(), 3*keepAlive+time.Second)
		defer cancel()
		r := newRequest(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["none"],"toolsListChanged":true},`+taskMeta+`}}`,
			versionHeader, mcptask.Revision20260728, methodHeader, "subscriptions/listen")
		w := newBufferedResponse()
		g.ServeHTTP(w, r)
		if n := strings.Count(w.body.String(), ": waiting\n\n"); n != 3 {
			t.Errorf("%d comments in %q", n, w.body.String())
		}
	})
}

// TestLostAcknowledgement checks that the gateway acknowledges a subscription if the SDK answers
// without an acknowledgement, but not if the SDK refuses it.
func TestLostAcknowledgement(t *testing.T) {
	for answer, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete"}}`:            `"taskIds":["a"]`,
		`{"jsonrpc":"2.0","id":"s","error":{"code":-32602,"message":"no filter"}}`: "",
	} {
		w := newBufferedResponse()
		m, in := newMerge(&subscription{id: []byte(`"s"`), tasks: []string{"a"}}), newSharedResponse(w)
		in.take = m.takeEvent
		in.Header().Set("Content-Type", "text/event-stream")
		if _, err := in.Write([]byte("data: " + answer + "\n\n")); err != nil {
			t.Fatal(err)
		}
		said := w.body.String()
		if acknowledged := strings.Contains(said, "notifications/subscriptions/acknowledged"); acknowledged != (want != "") || !strings.Contains(said, want) || m.acknowledged != acknowledged {
			t.Errorf("%s: %s", answer, said)
		}
		if _, refused := in.endAnswer(); refused || m.answer == nil || string(m.answer.Bytes()) != answer {
			t.Errorf("%s is not kept", answer)
		}
	}
}
