package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Each benchmark takes turns between its requests and those of a floor, and reports the ratio of the rates as of-floor.
// A machine that is slow for a while slows both.

// sender sends n requests, or n times several, on several connections.
type sender interface {
	send(b *testing.B, client *http.Client, n int)
}

// Together calls once n times, on several goroutines. No two calls get the same number.
func Together(n int, once func(number int64) error) error {
	var left atomic.Int64
	left.Store(int64(n))
	var sending sync.WaitGroup
	failed := make(chan error, 16)
	for range cap(failed) {
		sending.Go(func() {
			for {
				number := left.Add(-1)
				if number < 0 {
					return
				}
				if err := once(number); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	sending.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// ServeUnchecked serves the pipeline's tools on a loopback address. Other tests check each message; it does not.
func ServeUnchecked(b *testing.B, options taskserver.Options) (url string) {
	b.Helper()
	options.Logger = slog.New(slog.DiscardHandler)
	tasks, err := taskserver.New(options, AllRevisionsCITools())
	if err != nil {
		b.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	server := httptest.NewServer(gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	b.Cleanup(func() {
		_ = tasks.Close() // handlers that never end are cancelled
		server.Close()
		EndSessions(sdk)
	})
	return server.URL
}

// Posts is one request, sent many times.
type Posts struct {
	URL     string
	Headers http.Header
	Body    string
}

// NewPosts returns a request for Beside.
func NewPosts(url string, headers http.Header, body string) Posts {
	return Posts{url, headers, body}
}

// Echo is the floor for anything that answers JSON over HTTP: a handler that decodes the body and encodes it again.
func (p Posts) Echo(b *testing.B) Posts {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any
		if json.NewDecoder(r.Body).Decode(&v) == nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		}
	}))
	b.Cleanup(server.Close)
	return Posts{server.URL, p.Headers, p.Body}
}

// Beside sends work b.N times, and floor as often. requests is the number of requests that one send of work makes.
func Beside(b *testing.B, work sender, requests int, floor sender) {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	floor.send(b, client, 64) // the connections are there, and the caches warm
	work.send(b, client, 64)
	const rounds = 16
	var floorTime time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for round := range rounds {
		n := b.N*(round+1)/rounds - b.N*round/rounds
		b.StopTimer()
		began := time.Now()
		floor.send(b, client, n)
		floorTime += time.Since(began)
		b.StartTimer()
		work.send(b, client, n)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N*requests)/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64(b.N)/floorTime.Seconds(), "floor-req/s")
	b.ReportMetric(float64(requests)*float64(floorTime)/float64(b.Elapsed()), "of-floor")
}

// send implements sender.
func (p Posts) send(b *testing.B, client *http.Client, n int) {
	if err := Together(n, func(number int64) error {
		_, err := p.post(client, number)
		return err
	}); err != nil {
		b.Error(err)
	}
}

// post sends the request with a number. Requests that a session has under way need different IDs.
func (p Posts) post(client *http.Client, number int64) (answer []byte, err error) {
	body := strings.Replace(p.Body, `"id":1,`, fmt.Sprintf(`"id":%d,`, number), 1)
	r, err := http.NewRequest(http.MethodPost, p.URL, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	SetHeaders(r, p.Headers)
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"error"`))) {
		err = fmt.Errorf("HTTP %d: %s", response.StatusCode, answer)
	}
	return answer, err
}

// Life is a task's whole life: the call that makes it, and the request that gets its result.
type Life struct{ Create, Result Posts }

// send implements sender.
func (l Life) send(b *testing.B, client *http.Client, n int) {
	if err := Together(n, func(number int64) error { return l.live(client, number) }); err != nil {
		b.Error(err)
	}
}

func (l Life) live(client *http.Client, number int64) error {
	created, err := l.Create.post(client, number)
	if err != nil {
		return err
	}
	_, rest, _ := bytes.Cut(created, []byte(`"taskId":"`))
	id, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return fmt.Errorf("there is no task in %s", created)
	}
	p := Posts{l.Result.URL, l.Result.Headers.Clone(), strings.Replace(l.Result.Body, "TASK", string(id), 1)}
	if p.Headers.Get("Mcp-Name") != "" {
		p.Headers.Set("Mcp-Name", string(id))
	}
	for {
		answer, err := p.post(client, number)
		if err != nil || !bytes.Contains(answer, []byte(`"status":"working"`)) {
			return err
		}
	}
}

// Unlimited returns the options of a server that refuses no request, however fast they come.
func Unlimited() taskserver.Options {
	limits := NoPollLimits
	limits.Tasks, limits.Running, limits.Bytes = -1, -1, -1
	limits.Server = taskserver.Totals{Tasks: -1, Running: -1, Bytes: -1}
	limits.Anonymous = limits.Server
	return taskserver.Options{Limits: limits, Concurrency: 4096}
}

// CreateParams are the parameters of a call that makes a task which ends at once.
const CreateParams = `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"main"}`
