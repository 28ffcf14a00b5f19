package gosdk_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestEndlessMessages: a message that does not end fails its call when it is
// longer than the options allow, whatever it is made of, and the error says so.
func TestEndlessMessages(t *testing.T) {
	const most = 128 << 10
	filler := strings.Repeat("x", 4096)
	for name, body := range map[string]struct{ kind, begin, more string }{
		"JSON":                  {"application/json", `{"jsonrpc":"2.0","id":1,"result":{"x":"`, filler},
		"JSON after spaces":     {"application/json", "", strings.Repeat(" ", 4096)},
		"an event":              {"text/event-stream", `data: {"jsonrpc":"2.0","id":1,"result":{"x":"`, filler},
		"an event of lines":     {"text/event-stream", "", "data: " + filler + "\n"},
		"an event of comments":  {"text/event-stream", "", ": " + filler + "\n"},
		"an event, resumable":   {"text/event-stream", "id: 1\ndata:\n\ndata: ", filler},
		"an event's identifier": {"text/event-stream", "id: ", filler},
	} {
		for _, method := range []string{"initialize", "tools/list", "tools/call", "tasks/get"} {
			t.Run(name+" to "+method, inEveryRevision(func(t *testing.T, revision string) {
				if method == "initialize" && revision == wiretest.ModernRevision {
					return // it has no such request
				}
				var read atomic.Int64
				s := newScript(t, revision, method, func(*scripted, call) reply {
					return reply{header: map[string]string{"Content-Type": body.kind}, body: &wiretest.Torrent{T: t, Rest: body.begin, More: body.more, Taken: &read}}
				})
				conn, err := s.dial(gosdk.ClientOptions{MaxMessage: most})
				if err == nil {
					s.keep(conn, nil)
					if method == "tools/list" {
						_, err = conn.ListTools(t.Context())
					} else {
						_, err = mcptask.Run[number](t.Context(), conn, "tool", number{})
					}
				}
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d bytes (ClientOptions.MaxMessage)", most)) {
					t.Errorf("%v", err)
				}
				if n := len(s.of(method)); n != 1 {
					t.Errorf("asked %d times for what is too long", n)
				}
				if n := read.Load(); n > 2*most {
					t.Errorf("%d bytes were read", n)
				}
			}))
		}
	}
}

// TestLongMessages: what is as long as the options allow passes.
func TestLongMessages(t *testing.T) {
	const most = 128 << 10
	everyRevision(t, func(t *testing.T, revision string) {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			s := newScript(t, revision, "tools/call", func(_ *scripted, c call) reply {
				before, after := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s,"content":[],"structuredContent":{"n":7,"x":"`, c.id, complete), `"}}}`
				if kind != "application/json" {
					before, after = "data: "+before, after+"\n\n"
				}
				message := before + strings.Repeat("x", most-len(before)-len(after)) + after
				return reply{header: map[string]string{"Content-Type": kind}, body: strings.NewReader(message)}
			})
			out, err := mcptask.Run[number](t.Context(), s.connect(gosdk.ClientOptions{MaxMessage: most}), "tool", number{}, mcptask.Plain())
			if err != nil || out.N != 7 {
				t.Errorf("%s: %+v, %v", kind, out, err)
			}
		}
	})
}

// TestEndlessStandaloneStream: an event that does not end, on the stream that no
// request has asked for, costs the stream and not the memory.
func TestEndlessStandaloneStream(t *testing.T) {
	const most = 128 << 10
	bubble.Test(t, func(t *testing.T) {
		var read atomic.Int64
		s := newScript(t, wiretest.LegacyRevision, "HTTP GET", func(*scripted, call) reply {
			return reply{header: map[string]string{"Content-Type": "text/event-stream"}, body: &wiretest.Torrent{T: t, Rest: "data: ", More: "x", Taken: &read}}
		})
		conn := s.connect(gosdk.ClientOptions{MaxMessage: most})
		time.Sleep(time.Hour)
		if _, err := conn.ListTools(t.Context()); err != nil {
			t.Error(err)
		}
		if n := read.Load(); n > 20*most {
			t.Errorf("%d bytes were read", n)
		}
	})
}

// TestEndlessOutput: a command whose message does not end is ended, and the error
// says what was too long.
func TestEndlessOutput(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{"a line": `{"x":"`, "lines": "[\n", "spaces": " "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, wiretest.Patience)
			cmd := wiretest.StdioServer(t)
			more := map[string]string{"a line": "xxxxxxxx", "lines": "1,\n", "spaces": " \n"}[name]
			cmd.Env = append(cmd.Environ(), wiretest.EnvServer+"=endless", wiretest.EnvTorrentBegin+"="+begin, wiretest.EnvTorrentRest+"="+more)
			const most = 64 << 10
			_, err := gosdk.ConnectCommand(ctx, cmd, gosdk.ClientOptions{MaxMessage: most})
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d bytes (ClientOptions.MaxMessage)", most)) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNegativeBound: a bound that means nothing is refused.
func TestNegativeBound(t *testing.T) {
	t.Parallel()
	_, err := gosdk.Connect(t.Context(), "http://script/mcp", gosdk.ClientOptions{MaxMessage: -1})
	if err == nil || !strings.Contains(err.Error(), "MaxMessage") {
		t.Error(err)
	}
	_, err = gosdk.ConnectCommand(t.Context(), wiretest.StdioServer(t), gosdk.ClientOptions{MaxMessage: -1})
	if err == nil || !strings.Contains(err.Error(), "MaxMessage") {
		t.Error(err)
	}
}

// TestCompressed: a body that was compressed counts as what it becomes, and a header
// has a bound too.
func TestCompressed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		says   string
	}{
		"a body": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			_, _ = io.CopyN(packed, &wiretest.Torrent{More: strings.Repeat(" ", 4096), Taken: new(atomic.Int64)}, 4<<20)
			_ = packed.Close()
		}, "more than 65536 bytes (ClientOptions.MaxMessage)"},
		"a header": {func(w http.ResponseWriter) {
			for i := range 100 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 4<<10))
			}
		}, "exceeded"},
		"a session": {func(w http.ResponseWriter) { w.Header().Set("Mcp-Session-Id", strings.Repeat("x", 5<<10)) }, "5120 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				server := memnet.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }), nil)
				defer server.Close()
				_, err := gosdk.Connect(t.Context(), server.URL, gosdk.ClientOptions{MaxMessage: 64 << 10})
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Error(err)
				}
			})
		})
	}
}
