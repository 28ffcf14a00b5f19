package gosdk_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// TestPollsBesideTheSession checks that a poll beside the SDK's session returns what the same answer returns within it. A
// server that answers with a stream is polled within the session from then on.
func TestPollsBesideTheSession(t *testing.T) {
	asJSON := map[string]string{"Content-Type": "application/json"}
	for _, revision := range []string{wiretest.ModernRevision, wiretest.LegacyRevision} {
		for name, answer := range map[string]func(s *scripted) reply{
			"a state":            func(s *scripted) reply { return s.state("t", "working") },
			"another's state":    func(s *scripted) reply { return s.state("u", "working") },
			"a wrong kind":       func(*scripted) reply { return result(`{"resultType":"task"}`) },
			"null":               func(*scripted) reply { return result(`null`) },
			"an error":           func(*scripted) reply { return refusal(wiretest.InvalidParams, `{"reason":"expired"}`) },
			"an error of 400":    func(*scripted) reply { r := refusal(-32001, ""); r.status = http.StatusBadRequest; return r },
			"an error of 500":    func(*scripted) reply { r := refusal(-32603, ""); r.status = http.StatusInternalServerError; return r },
			"a code of the SDK":  func(*scripted) reply { return refusal(-32004, "") },
			"unauthorized":       func(*scripted) reply { return reply{text: "who?", status: http.StatusUnauthorized} },
			"a lost session":     func(*scripted) reply { return reply{text: "what?", status: http.StatusNotFound} },
			"a broken gateway":   func(*scripted) reply { return reply{text: "sorry", status: http.StatusBadGateway} },
			"text":               func(*scripted) reply { return reply{text: "hello"} },
			"accepted":           func(*scripted) reply { return reply{status: http.StatusAccepted} },
			"no JSON":            func(*scripted) reply { return reply{body: strings.NewReader("{"), header: asJSON} },
			"a body that breaks": func(*scripted) reply { return reply{body: iotest.ErrReader(io.ErrUnexpectedEOF), header: asJSON} },
			"too long":           func(*scripted) reply { return result(`{"x":%q}`, strings.Repeat("x", 1<<16)) },
			"a limit": func(*scripted) reply {
				r := refusal(-32603, `{"limit":"polls"}`)
				r.status, r.header = http.StatusTooManyRequests, map[string]string{"Retry-After": "7"}
				return r
			},
			"another session": func(s *scripted) reply {
				r := s.state("t", "working")
				r.header = map[string]string{"Mcp-Session-Id": "other"}
				return r
			},
		} {
			t.Run(revision+"/"+name, inBubble(func(t *testing.T) {
				read := func(streams int) (said string, polls int) {
					s := polled(t, revision, func(s *scripted, n int) reply {
						if n > streams {
							return answer(s)
						}
						r := s.state("t", "working")
						r.stream = func(func(string)) {}
						return r
					})
					s.on("initialize", func(c call) reply {
						r, _ := s.open(c)
						r.header = map[string]string{"Mcp-Session-Id": "own"}
						return r
					})
					conn := s.connect(gosdk.ClientOptions{MaxMessage: 1 << 15})
					for range streams {
						if state, err := conn.Task(t.Context(), "t"); err != nil || state.Status != mcptask.StatusWorking {
							t.Fatalf("a stream: %+v, %v", state, err)
						}
					}
					state, err := conn.Task(t.Context(), "t")
					var later interface{ RetryAfter() time.Duration }
					if errors.As(err, &later) {
						said = later.RetryAfter().String()
					}
					var wire *mcptask.Error
					return fmt.Sprint(said, state.Status, errors.As(err, &wire), err), len(s.of("tasks/get")) - streams
				}
				beside, polls := read(0)
				within, others := read(1)
				if beside != within || polls != others {
					t.Errorf("%s, in %d polls; within the session %s, in %d", beside, polls, within, others)
				}
			}))
		}
	}
}
