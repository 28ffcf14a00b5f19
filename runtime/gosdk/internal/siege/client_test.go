//go:build long

package siege_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk/internal/siege"
)

// calling is the task that a test gives the client under attack.
type calling struct{ URL, Revision string }

// call runs as the client under attack: it calls a tool, waits for its result and writes how the call ended. Then it
// obeys.
func call(text string) error {
	var c calling
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	j := &journal{}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	end := "done"
	conn, err := gosdk.Connect(ctx, c.URL, gosdk.ClientOptions{
		Revision: c.Revision, Logger: slog.New(slog.NewTextHandler(j, nil)),
		Answer: mcptask.Answer(siege.Question, func(context.Context, mcptask.Question) (siege.Answer, error) {
			return siege.Answer{Count: 1}, nil
		}),
	})
	if err == nil {
		_, err = mcptask.Run[struct{}](ctx, conn, "tool", struct{}{})
		_ = conn.Close()
	}
	if err != nil {
		end = strings.ReplaceAll(fmt.Sprintf("%.1000s", err), "\n", " ")
	}
	if _, err := fmt.Fprintf(os.Stdout, "%s\n", end); err != nil {
		return err
	}
	return obey(func() (s state) {
		j.tell(&s)
		return s
	})
}

// answerFunc answers a request with an ID. It returns false if it leaves the request to the villain.
type answerFunc func(w http.ResponseWriter, r *http.Request, id json.RawMessage) bool

// villain is a hostile server. It behaves like one of 2026-07-28 except in what answer does.
type villain struct {
	t *testing.T
	// method is the method whose requests answer handles. It returns false to leave a request to villain.
	method string
	answer answerFunc
	// replies are the client's responses, for a villain that asks on a stream of 2025-11-25.
	replies chan json.RawMessage

	mu    sync.Mutex
	polls []time.Time
	sent  int64 // bytes of an endless answer
}

// ServeHTTP implements http.Handler.
func (v *villain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID            json.RawMessage `json:"id"`
		Method        string          `json:"method"`
		Result, Error json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.Method == "tasks/get" {
		v.mu.Lock()
		v.polls = append(v.polls, time.Now())
		v.mu.Unlock()
	}
	if m.Method == v.method && v.answer(w, r, m.ID) {
		return
	}
	switch m.Method {
	case "": // a response
		if v.replies != nil && string(m.ID) != "null" {
			v.replies <- append(m.Result, m.Error...)
		}
		w.WriteHeader(http.StatusAccepted)
	case "initialize":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"v","version":"1"}}}`, m.ID, legacyRevision)
	case "notifications/initialized", "notifications/cancelled":
		w.WriteHeader(http.StatusAccepted)
	case "server/discover":
		say(w, m.ID, `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"public"`)
	case "tools/list":
		say(w, m.ID, `"tools":[{"name":"tool","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"public"`)
	case "tools/call":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"task",%s}}`, m.ID, task("working"))
	case "tasks/get":
		say(w, m.ID, task("completed")+`,"result":{"content":[]}`)
	case "tasks/update", "tasks/cancel":
		say(w, m.ID, `"_meta":{}`)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	}
}

// say answers with the members of a result.
func say(w http.ResponseWriter, id json.RawMessage, members string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}`, id, members)
}

// task is a task whose server asks for a poll every millisecond.
func task(status string) string {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	return fmt.Sprintf(`"taskId":"t","status":%q,"createdAt":%q,"lastUpdatedAt":%q,"ttlMs":3600000,"pollIntervalMs":1`, status, now, now)
}

// endless writes until the client hangs up, or until it has written so many bytes.
func (v *villain) endless(w io.Writer, text string, most int64) {
	piece := bytes.Repeat([]byte(text), 1<<16/len(text))
	for n := int64(0); n < most; n += int64(len(piece)) {
		if _, err := w.Write(piece); err != nil {
			return
		}
		v.mu.Lock()
		v.sent = max(v.sent, n)
		v.mu.Unlock()
	}
}

// always makes the villain answer a method with the same function.
func (v *villain) always(method string, answer func(w http.ResponseWriter, r *http.Request, id json.RawMessage)) {
	v.method, v.answer = method, func(w http.ResponseWriter, r *http.Request, id json.RawMessage) bool {
		answer(w, r, id)
		return true
	}
}

// endlessly answers a call with a body that begins normally and does not end.
func (v *villain) endlessly(media, begin, text string, most int64) {
	v.always("tools/call", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, strings.ReplaceAll(begin, "%ID", string(id)))
		v.endless(w, text, most)
	})
}

// asks answers the first poll with questions.
func (v *villain) asks(questions string) {
	var once sync.Once
	v.method, v.answer = "tasks/get", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) (answered bool) {
		once.Do(func() {
			answered = true
			say(w, id, task("input_required")+`,"inputRequests":`+questions)
		})
		return answered
	}
}

// asksBeside asks in 2025-11-25 on the stream of a call: first plainly, then as a task whose result it fetches.
func (v *villain) asksBeside(schema string) {
	v.replies = make(chan json.RawMessage, 10)
	v.always("tools/call", func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(format string, args ...any) (reply json.RawMessage) {
			fmt.Fprintf(w, "data: "+format+"\n\n", args...)
			_ = http.NewResponseController(w).Flush()
			select {
			case reply = <-v.replies:
			case <-r.Context().Done():
			}
			return reply
		}
		params := fmt.Sprintf(`"message":"?","requestedSchema":%s,"_meta":{"io.github.mcptaskgen/input":"Bounds"}`, schema)
		send(`{"jsonrpc":"2.0","id":"plain","method":"elicitation/create","params":{%s}}`, params)
		var created struct{ Task struct{ TaskID string } }
		if json.Unmarshal(send(`{"jsonrpc":"2.0","id":"task","method":"elicitation/create","params":{%s,"task":{}}}`, params), &created) == nil {
			send(`{"jsonrpc":"2.0","id":"result","method":"tasks/result","params":{"taskId":%q}}`, created.Task.TaskID)
		}
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id)
	})
}

// question returns a question with a schema of the server's choice.
func question(schema string) string {
	return fmt.Sprintf(`{"method":"elicitation/create","params":{"message":"?","requestedSchema":%s,"_meta":{"io.github.mcptaskgen/input":"Bounds"}}}`, schema)
}

const gigabyte = 1 << 30

// The client's budgets.
const (
	// clientPeak limits the resident memory that a server may make a client take, in MiB.
	clientPeak = 256
	// clientTime limits the processor time that a server may make a client take.
	clientTime = 20 * time.Second
	// clientPoll is the shortest interval between two requests for a task, whatever the server asks for.
	clientPoll = 10 * time.Millisecond
)

// TestClient checks what a server can make a client take.
func TestClient(t *testing.T) {
	for _, attack := range []struct {
		name string
		ends string // an outcome that the call must not have, if any
		set  func(v *villain)
	}{
		{"an endless event", "done", func(v *villain) { v.endlessly("text/event-stream", "data: ", "x", gigabyte) }},
		{"many events that say nothing", "done", func(v *villain) { v.endlessly("text/event-stream", "", ": ping\n\n", int64(scale(10<<20))) }},
		{"endless lines of one event", "done", func(v *villain) {
			v.endlessly("text/event-stream", "", "data: "+strings.Repeat("x", 1000)+"\n", gigabyte)
		}},
		{"an endless answer", "done", func(v *villain) {
			v.endlessly("application/json", `{"jsonrpc":"2.0","id":%ID,"result":{"content":[{"type":"text","text":"`, "x", gigabyte)
		}},
		{"a compressed answer", "done", func(v *villain) {
			v.always("tools/call", func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				_, _ = io.WriteString(z, `{"jsonrpc":"2.0","id":1,"result":{"content":"`)
				v.endless(z, "x", gigabyte)
			})
		}},
		{"many questions", "", func(v *villain) {
			var b strings.Builder
			for i := range scale(20_000) {
				fmt.Fprintf(&b, `,"q%d":%s`, i, question(`{"type":"object","properties":{}}`))
			}
			v.asks("{" + b.String()[1:] + "}")
		}},
		{"a schema of itself", "", func(v *villain) { v.asks(`{"q":` + question(`{"$ref":"#"}`) + `}`) }},
		{"a schema of itself on a stream", "", func(v *villain) { v.asksBeside(`{"$ref":"#"}`) }},
		{"a union of itself on a stream", "", func(v *villain) { v.asksBeside(`{"type":"object","allOf":[{"$ref":"#"}]}`) }},
		{"a property of itself", "", func(v *villain) {
			v.asks(`{"q":` + question(`{"type":"object","properties":{"count":{"$ref":"#/properties/count"}}}`) + `}`)
		}},
		{"a schema with a long pattern", "", func(v *villain) {
			v.asks(`{"q":` + question(`{"type":"object","properties":{"word":{"type":"string","pattern":"((((a{1,100}){1,100}){1,100}){1,100})"}}}`) + `}`)
		}},
		{"a deep schema", "", func(v *villain) {
			v.asks(`{"q":` + question(strings.Repeat(`{"type":"object","properties":{"count":`, 5000)+`{}`+strings.Repeat(`}}`, 5000)) + `}`)
		}},
		{"deep answers", "", func(v *villain) {
			v.always("tasks/get", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
				say(w, id, task("completed")+`,"result":{"content":[],"structuredContent":`+siege.NestObject(900)+`}`)
			})
		}},
		{"poison numbers", "", func(v *villain) {
			v.always("tasks/get", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
				say(w, id, strings.NewReplacer(`"ttlMs":3600000`, `"ttlMs":1e-999999`, `"pollIntervalMs":1`, `"pollIntervalMs":1e999999`).Replace(task("completed"))+`,"result":{"content":[]}`)
			})
		}},
		{"a poll each millisecond", "", func(v *villain) {
			n := 0
			v.method, v.answer = "tasks/get", func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) bool {
				if n++; n <= 20 {
					say(w, id, task("working"))
				}
				return n <= 20
			}
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			v := &villain{t: t}
			attack.set(v)
			server := httptest.NewServer(v)
			t.Cleanup(server.Close)
			t.Cleanup(server.CloseClientConnections)
			revision := modernRevision
			if v.replies != nil {
				revision = legacyRevision
			}
			p := begin(t, asClient, calling{server.URL, revision})
			done := p.guard(clientTime, raced*clientPeak<<20)
			end := p.line()
			done()
			v.mu.Lock()
			defer v.mu.Unlock()
			t.Logf("it ends with %.200s; %d polls, %d MiB read, peak %d MiB, %v", end, len(v.polls), v.sent>>20, p.resident("VmHWM")>>20, p.cpu())
			if attack.ends != "" && end == attack.ends || strings.Contains(end, context.DeadlineExceeded.Error()) {
				t.Errorf("it ends with %q", end)
			}
			if has := p.resident("VmHWM"); has > raced*clientPeak<<20 {
				t.Errorf("it had %d MiB of memory", has>>20)
			}
			if n := len(v.polls); n > 10 {
				if took := v.polls[n-1].Sub(v.polls[0]); took < time.Duration(n-1)*clientPoll {
					t.Errorf("%d requests for a task in %v", n, took)
				}
			}
			for _, text := range p.settle("goroutines are left", func(s state) bool { return s.Goroutines <= 10 }).Panics {
				t.Errorf("it panicked: %s", text)
			}
		})
	}
}
