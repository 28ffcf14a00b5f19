//go:build long

package siege_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk/internal/siege"
)

// TestMemoryUnderWay floods a server with bodies and with answers that nobody reads. All of them together take no more
// than budgetPeak, and small requests are answered beside them.
func TestMemoryUnderWay(t *testing.T) {
	const body = 4 << 20 // taskserver.Options.MaxBody
	values := func(e *enemy, method, value string) message {
		return e.modern(method, "", `"x":`+siege.List(value, body-1000)+`,`, false)
	}
	for _, attack := range []struct {
		name   string
		config config
		run    func(s *siegeOf) (drop func())
	}{
		{"bodies without their last byte", config{}, func(s *siegeOf) func() {
			m := values(s.enemy, "tools/call", "1234567")
			return s.flood(500, 1, func(int) message { return m })
		}},
		{"40 bodies of tiny objects", config{}, func(s *siegeOf) func() {
			m := values(s.enemy, "no/such", "{}")
			return s.flood(40, 0, func(int) message { return m })
		}},
		{"80 bodies of tiny numbers", config{}, func(s *siegeOf) func() {
			m := values(s.enemy, "prompts/get", "1")
			return s.flood(80, 0, func(int) message { return m })
		}},
		{"30 bodies of a tenant", config{Bearer: true}, func(s *siegeOf) func() {
			m := values(s.enemy, "resources/read", "{}")
			return s.flood(30, 0, func(int) message { return m })
		}},
		{"calls with tiny values", config{}, func(s *siegeOf) func() {
			m := s.tool("integers", `{"v":`+siege.List("{}", 1<<20-1000)+`}`, false)
			return s.flood(300, 0, func(int) message { return m })
		}},
		{"answers with tiny values", config{}, func(s *siegeOf) func() {
			m := s.modern("tasks/update", "x", `"taskId":"x","inputResponses":`+siege.Object(body/13, false)+`,`, true)
			return s.flood(80, 0, func(int) message { return m })
		}},
		{"members of the message", config{}, func(s *siegeOf) func() {
			m := s.modern("tasks/get", "x", `"taskId":"x",`, true)
			many := siege.Object(body/13, false)
			m.body = many[:len(many)-1] + "," + m.body[1:]
			return s.flood(80, 0, func(int) message { return m })
		}},
		{"results of calls that nobody reads", config{Bearer: true}, func(s *siegeOf) func() {
			return s.flood(500, 0, func(int) message { return s.tool("big", `{"bytes":3900000}`, false) })
		}},
		{"results of a task that nobody reads", config{Bearer: true, Limits: `{"Polls":-1}`}, func(s *siegeOf) func() {
			task := s.send(s.tool("big", `{"bytes":3900000}`, true)).task()
			return s.flood(500, 0, func(int) message { return s.modern("tasks/get", task, fmt.Sprintf(`"taskId":%q,`, task), true) })
		}},
		{"results of a session that nobody reads", config{}, func(s *siegeOf) func() {
			s.open()
			task := s.send(s.legacy("tools/call", `{"name":"big","arguments":{"bytes":3900000},"task":{}}`)).task()
			return s.flood(500, 0, func(int) message { return s.legacy("tasks/result", fmt.Sprintf(`{"taskId":%q}`, task)) })
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			b := besiege(t, attack.config)
			s := &siegeOf{t, b, newEnemy(t, b.address, attack.config.token("mallory"))}
			done := b.guard(patience, raced*2*budgetPeak<<20)
			drop := attack.run(s)
			small := newEnemy(t, b.address, attack.config.token("alice")) // without tokens, the same account
			for range 10 {
				if r := small.send(small.tool("quick", `{"v":[1]}`, false)); r.status != 200 || !strings.Contains(string(r.body), "done") {
					t.Errorf("a small request beside the flood: %d %.300s", r.status, r.body)
				}
			}
			b.idle()
			drop()
			done()
			small.client.CloseIdleConnections()
			s.client.CloseIdleConnections()
			b.over(attack.config.token("alice"), budgetPeak, budgetKept)
		})
	}
}

// flood sends so many requests at once, each on its own connection and without its last bytes. It reads no answer
// before drop closes the connections.
func (s *siegeOf) flood(n, without int, next func(int) message) (drop func()) {
	s.t.Helper()
	var all sync.WaitGroup
	var conns []net.Conn
	for i := range n {
		conn, err := s.dial(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		conns = append(conns, conn)
		all.Go(func() { _ = next(i).write(conn, without) }) // fails if the server refuses it, or at the end
	}
	return func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
		all.Wait()
	}
}
