package gateway

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// A subscription that the SDK serves alone counts as a request that waits on a pipe too, until
// it is cancelled, answered, or the pipe ends.
func TestPipeCountsListen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 3
		server, err := mcptask.NewServer(mcptask.Options{Limits: mcptask.Limits{Waiting: most}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
		listen := func(p *piped, id string) {
			p.say(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, id)
		}
		refused := func(p *piped, id, why string) {
			t.Helper()
			listen(p, id)
			if reply := p.hear(); !strings.Contains(reply, `"id":`+id) || !strings.Contains(reply, why) {
				t.Fatalf("%s, want %s", reply, why)
			}
		}
		p := newPiped(t, server, 0)
		for id := range most {
			listen(p, fmt.Sprint(id))
		}
		refused(p, "9", `"limit":"waiting"`)
		p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
		refused(p, "0", "under way") // the SDK has not answered it
		listen(p, "10")
		refused(p, "11", `"limit":"waiting"`)
		p.say(`{"jsonrpc":"2.0","id":"-","method":"test/answer","params":{"name":"10"}}`) // the SDK does
		p.hear()
		p.hear()
		listen(p, "10")
		refused(p, "12", `"limit":"waiting"`)
		_ = p.in.Close()
		synctest.Wait()
		p = newPiped(t, server, 0)
		for id := range most {
			listen(p, fmt.Sprint(id))
		}
		refused(p, "9", `"limit":"waiting"`)
	})
}
