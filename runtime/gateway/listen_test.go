package gateway

import (
	"strings"
	"testing"
	"time"

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
