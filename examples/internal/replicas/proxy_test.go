package replicas

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// startProxy starts a proxy for servers.
func startProxy(t *testing.T, servers ...*httptest.Server) (*Proxy, string) {
	t.Helper()
	var urls []string
	for _, server := range servers {
		t.Cleanup(server.Close)
		urls = append(urls, server.URL)
	}
	p, err := NewProxy(urls...)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return p, front.URL
}

// post sends a request of the session "s" and returns the status and the answer.
func post(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Mcp-Session-Id", "s")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// newNumbered starts a server that answers with its number and the request's body.
func newNumbered(number int) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %s %v", number, body, err)
	}))
}

func TestProxyTakesTurns(t *testing.T) {
	dead := newNumbered(2)
	proxy, url := startProxy(t, newNumbered(1), dead, newNumbered(3))
	for _, want := range []string{"1", "2", "3", "1"} {
		if status, got := post(t, url); status != http.StatusOK || got != want+" hello <nil>" {
			t.Errorf("%d %q, want %s", status, got, want)
		}
	}
	if got := proxy.Sessions(); len(got) != 1 || !slices.Equal(got[0], []int{1, 2, 3}) {
		t.Errorf("%v", got)
	}
	dead.Close()
	for _, want := range []string{"3", "3", "1", "3"} { // the second server's requests go to the third
		if status, got := post(t, url); status != http.StatusOK || got != want+" hello <nil>" {
			t.Errorf("%d %q, want %s", status, got, want)
		}
	}
}

// TestProxyRepeatsNothing checks that a request that a server may have acted on goes to no other.
func TestProxyRepeatsNothing(t *testing.T) {
	var requests atomic.Int32
	breaking := func() *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			requests.Add(1)
			panic(http.ErrAbortHandler)
		}))
	}
	_, url := startProxy(t, breaking(), breaking())
	if status, _ := post(t, url); status != http.StatusBadGateway || requests.Load() != 1 {
		t.Errorf("%d after %d requests", status, requests.Load())
	}
}

// TestProxyFlushes checks that an event arrives before its stream ends.
func TestProxyFlushes(t *testing.T) {
	end := make(chan struct{})
	_, url := startProxy(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintln(w, "data: 1")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-end
	})))
	defer close(end)
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); line != "data: 1\n" {
		t.Errorf("%q, %v", line, err)
	}
}
