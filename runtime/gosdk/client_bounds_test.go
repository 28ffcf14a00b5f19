package gosdk_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestEndlessMessages: a message longer than the options allow fails its call, whatever it is made of, and the error
// names the limit.
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
					t.Errorf("sent the request %d times, want once", n)
				}
				if n := read.Load(); n > 2*most {
					t.Errorf("%d bytes were read", n)
				}
			}))
		}
	}
}

// TestLongMessages: a message as long as the options allow passes.
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

// TestLongInitialize checks that the client reads the capabilities of a server whose answer to
// initialize is long, as JSON and on a stream. Without them, it would ask for no tasks.
func TestLongInitialize(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		t.Run(kind, inBubble(func(t *testing.T) {
			s := newScript(t, wiretest.LegacyRevision, "initialize", func(s *scripted, c call) reply {
				message := result(`{"instructions":%q,"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"s","version":"1"}}`,
					strings.Repeat("x", 2<<20), s.protocol(), takesTasks).message(c.id)
				if kind != "application/json" {
					message = "data: " + message + "\n\n"
				}
				return reply{header: map[string]string{"Content-Type": kind}, body: strings.NewReader(message)}
			})
			start(t, s.connect(gosdk.ClientOptions{}))
			if calls := s.of("tools/call"); calls[0].member("task") == "" {
				t.Errorf("the client has not asked for a task: %s", calls[0].params)
			}
		}))
	}
}

// TestEndlessStandaloneStream: an endless event on the standalone stream ends the stream. The client does not keep it
// in memory.
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

// TestEndlessOutput: the client ends a command whose message does not end, and the error names the limit.
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

// TestNegativeBound: Connect refuses a negative bound.
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

// TestCompressed: the limit counts the bytes of a compressed body after decompression. Headers have a limit too.
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

// TestStreamThatReturns: if a server ends its stream again and again, the client reopens it at a bearable rate, whether
// the server says to come back at once or never.
func TestStreamThatReturns(t *testing.T) {
	for name, c := range map[string]struct {
		retry       string
		lasts       time.Duration
		least, most int // GETs
	}{
		"at once": {"1", time.Minute, 500, 610},
		"never":   {"999999999999", time.Hour, 11, 13},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := newScript(t, wiretest.LegacyRevision, "HTTP GET", func(_ *scripted, get call) reply {
				return reply{header: map[string]string{"Content-Type": "text/event-stream"},
					body: strings.NewReader(fmt.Sprintf("id: %d\nretry: %s\ndata:\n\n", get.n, c.retry))}
			})
			s.connect(gosdk.ClientOptions{})
			time.Sleep(c.lasts)
			if n := len(s.of("HTTP GET")); n < c.least || n > c.most {
				t.Errorf("%d streams in %v", n, c.lasts)
			}
		}))
	}
}

// TestLongIdentifiers: the client sends the IDs of events and tasks back in headers, so their length is limited.
func TestLongIdentifiers(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	t.Run("an event", inBubble(func(t *testing.T) {
		s := newScript(t, wiretest.LegacyRevision, "HTTP GET", func(_ *scripted, c call) reply {
			if n := len(c.header.Get("Last-Event-Id")); n > 4096 {
				t.Errorf("an identifier of %d bytes", n)
			}
			return reply{header: map[string]string{"Content-Type": "text/event-stream"}, body: strings.NewReader("id: " + long + "\ndata:\n\n")}
		})
		s.connect(gosdk.ClientOptions{})
		time.Sleep(time.Minute)
		if len(s.of("HTTP GET")) < 2 {
			t.Error("the stream was not resumed")
		}
	}))
	t.Run("a task", inEveryRevision(func(t *testing.T, revision string) {
		s := newScript(t, revision, "tools/call", func(s *scripted, _ call) reply { return s.created(long) })
		_, err := mcptask.Start[number](t.Context(), s.connect(gosdk.ClientOptions{}), "tool", number{})
		if err == nil || !strings.Contains(err.Error(), "1048576 bytes") || len(err.Error()) > 500 {
			t.Errorf("%.500v", err)
		}
	}))
}

// TestHugeList: a list of tools has a limit for all its pages together.
func TestHugeList(t *testing.T) {
	everyRevision(t, func(t *testing.T, revision string) {
		var sent atomic.Int64
		s := newScript(t, revision, "tools/list", func(_ *scripted, c call) reply {
			sent.Add(50 << 10)
			return result(`{%s,"tools":[{"name":"t%d","description":"%s","inputSchema":{"type":"object"}}],"nextCursor":"%[2]d"}`,
				complete, c.n, strings.Repeat("x", 50<<10))
		})
		_, err := s.connect(gosdk.ClientOptions{MaxMessage: 64 << 10}).ListTools(t.Context())
		if err == nil || !strings.Contains(err.Error(), "ClientOptions.MaxMessage") {
			t.Error(err)
		}
		if n := sent.Load(); n > 1<<20 {
			t.Errorf("%d bytes were taken", n)
		}
	})
}

// TestStreamsLeftOpen: a server that answers on a stream and leaves it open does not keep the client's resources.
func TestStreamsLeftOpen(t *testing.T) {
	everyRevision(t, func(t *testing.T, revision string) {
		var open atomic.Int32
		s := newScript(t, revision, "tools/list", func(_ *scripted, c call) reply {
			return reply{stream: func(send func(string)) {
				open.Add(1)
				defer open.Add(-1)
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s,"tools":[]}}`, c.id, complete))
				<-c.ctx.Done()
			}}
		})
		conn := s.connect(gosdk.ClientOptions{})
		for range 50 {
			if _, err := conn.ListTools(t.Context()); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		if n := open.Load(); n > 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}

// TestSilentStandaloneStream: a server that never answers the request for a stream does not hold up Connect longer than
// its context.
func TestSilentStandaloneStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newScript(t, wiretest.LegacyRevision, "HTTP GET", func(_ *scripted, c call) reply {
			<-c.ctx.Done()
			return reply{}
		})
		ctx := within(t, time.Minute)
		began := time.Now()
		conn, err := gosdk.Connect(ctx, "http://script/mcp", gosdk.ClientOptions{Revision: s.revision, HTTPClient: s.client()})
		if took := time.Since(began); took > time.Minute {
			t.Errorf("Connect took %v", took)
		}
		if err == nil {
			_ = conn.Close()
		}
	})
}

// TestPagesToOpen: the number of pages that one error may ask to open is limited.
func TestPagesToOpen(t *testing.T) {
	everyRevision(t, func(t *testing.T, revision string) {
		var opened atomic.Int32
		s := newScript(t, revision, "tools/call", func(*scripted, call) reply {
			var all []string
			for i := range 5000 {
				all = append(all, fmt.Sprintf(`{"mode":"url","message":"?","url":"https://example.com/%d","elicitationId":"%[1]d"}`, i))
			}
			return reply{err: fmt.Sprintf(`{"code":-32042,"message":"open these","data":{"elicitations":[%s]}}`, strings.Join(all, ","))}
		})
		ctx := within(t, time.Minute)
		_, err := mcptask.Run[number](ctx, s.connect(gosdk.ClientOptions{OpenURL: func(context.Context, mcptask.Question) error {
			opened.Add(1)
			return nil
		}}), "tool", number{})
		if n := opened.Load(); err == nil || n > 16 {
			t.Errorf("%d pages, %v", n, err)
		}
	})
}

// TestFloodOfRequests: the client answers a limited number of a server's requests at once and refuses the others. It
// has room again after it has answered some.
func TestFloodOfRequests(t *testing.T) {
	const flood, most = 1000, 256
	eachWay(t, func(t *testing.T, connect connector) {
		release := make(chan struct{})
		var now, asked atomic.Int32
		answer := pipeline.AnswerApproval(func(ctx context.Context, _ mcptask.Question) (pipeline.Approval, error) {
			asked.Add(1)
			if n := now.Add(1); n > most {
				t.Errorf("%d at once", n)
			}
			defer now.Add(-1)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return pipeline.Approval{Approve: true}, nil
		})
		s := &scripted{t: t, revision: wiretest.LegacyRevision}
		var mu sync.Mutex
		answered, refused := 0, 0
		s.heard = func(body []byte) {
			var m struct {
				ID     string
				Result json.RawMessage
				Error  json.RawMessage
			}
			_ = json.Unmarshal(body, &m)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case m.Result != nil && m.ID != "":
				answered++
			case strings.Contains(string(m.Error), `"limit":"requests"`):
				refused++
			case m.Error != nil:
				t.Errorf("answered with %s", m.Error)
			}
		}
		count := func() (int, int) {
			mu.Lock()
			defer mu.Unlock()
			return answered, refused
		}
		s.answer = func(c call) reply {
			switch c.method {
			case "tasks/get":
				return s.state("t", "input_required")
			case "tasks/result":
				return reply{stream: func(send func(string)) {
					ask := func(id string) {
						send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"elicitation/create","params":%s}`, id,
							hostileQuestion(`{"type":"object","properties":{"approve":{"type":"boolean"}}}`)))
					}
					for i := range flood {
						ask(fmt.Sprint("q", i))
						ask(fmt.Sprint("q", i)) // a repeated request counts once
					}
					<-c.ctx.Done()
				}}
			}
			return reply{}
		}
		conn := connect(s, gosdk.ClientOptions{Answer: answer})
		ctx, cancel := wiretest.WithTimeout(t, 10*time.Minute)
		go func() { _, _ = start(t, conn).Wait(ctx) }()
		time.Sleep(time.Minute)
		if n := runtime.NumGoroutine(); n > flood {
			t.Errorf("%d goroutines", n)
		}
		if _, r := count(); now.Load() != most || r < flood-most || r > 2*(flood-most) {
			t.Errorf("%d under way, %d refused", now.Load(), r)
		}
		close(release)
		time.Sleep(time.Minute)
		if a, _ := count(); a != most {
			t.Errorf("%d answered", a)
		}
		cancel()
		synctest.Wait()
	})
}

// TestFloodBeforeTheCall: the number of questions before a task is limited too.
func TestFloodBeforeTheCall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		answer := pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
			asked.Add(1)
			return pipeline.Approval{Approve: true}, nil
		})
		s := newScript(t, wiretest.ModernRevision, "tools/call", func(*scripted, call) reply {
			questions := map[string]json.RawMessage{}
			for i := range 5000 {
				questions[fmt.Sprint("q", i)] = json.RawMessage(`{"method":"elicitation/create","params":` +
					hostileQuestion(`{"type":"object","properties":{"approve":{"type":"boolean"}}}`) + `}`)
			}
			data, _ := json.Marshal(questions)
			return result(`{"resultType":"input_required","inputRequests":%s}`, data)
		})
		_, err := mcptask.Run[number](t.Context(), s.connect(gosdk.ClientOptions{Answer: answer}), "tool", number{})
		if err == nil || !strings.Contains(err.Error(), "5000 questions") || asked.Load() > 0 {
			t.Errorf("%v, %d asked", err, asked.Load())
		}
	})
}
