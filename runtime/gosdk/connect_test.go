package gosdk_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// overheard is a server that records the requests that it receives.
type overheard struct {
	mu       sync.Mutex
	requests []string // method, authorization and body of each
}

func (o *overheard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests = append(o.requests, r.Method+" "+r.Header.Get("Authorization")+" "+string(body))
	http.Error(w, "no", http.StatusNotFound)
}

func secretToken(context.Context) (string, error) { return "secret", nil }

// TestRedirectElsewhere: a client does not follow a redirect to another server, and never sends its token there.
func TestRedirectElsewhere(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			other := &overheard{}
			elsewhere := memnet.NewServer(other, nil)
			defer elsewhere.Close()
			server := memnet.NewServer(http.RedirectHandler(elsewhere.URL, status), nil)
			defer server.Close()
			_, err := gosdk.Connect(t.Context(), server.URL, gosdk.ClientOptions{Bearer: secretToken})
			if err == nil || !strings.Contains(err.Error(), "redirects to another, "+elsewhere.URL) {
				t.Errorf("%d: %v", status, err)
			}
			// A client that allows redirects follows it, without the token.
			trusting := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
			if _, err := gosdk.Connect(t.Context(), server.URL, gosdk.ClientOptions{Bearer: secretToken, HTTPClient: trusting}); err == nil {
				t.Errorf("%d: connected", status)
			}
			for _, request := range other.requests {
				if strings.Contains(request, "secret") {
					t.Errorf("%d: the other server was sent %s", status, request)
				}
			}
			if status == http.StatusTemporaryRedirect && len(other.requests) == 0 {
				t.Error("the client's own CheckRedirect does not count")
			}
		}
	})
}

// TestRedirectWithin: a client follows redirects on the server's own address, and gives up in a loop.
func TestRedirectWithin(t *testing.T) {
	t.Parallel()
	tasks, sdk := newServer(t, taskserver.Options{}, wiretest.AllRevisionsCITools())
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	mux := http.NewServeMux()
	mux.Handle("/old", http.RedirectHandler("/mcp", http.StatusTemporaryRedirect))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusTemporaryRedirect))
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s with %q", r.Method, r.Header.Get("Authorization"))
		}
		handler.ServeHTTP(w, r)
	})
	server := memnet.NewServer(mux, nil)
	t.Cleanup(server.Close)
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		conn := dial(t, server.URL+"/old", gosdk.ClientOptions{Bearer: secretToken, Revision: revision})
		if _, err := pipeline.NewCIClient(conn).RunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/r"}); err != nil {
			t.Error(err)
		}
		if _, err := gosdk.Connect(t.Context(), server.URL+"/loop", gosdk.ClientOptions{Revision: revision}); err == nil || !strings.Contains(err.Error(), "more than 10 times") {
			t.Errorf("a loop: %v", err)
		}
	})
}

// TestNoBearer: if the token source fails, the request fails and says why.
func TestNoBearer(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		server := memnet.NewServer(&overheard{}, nil)
		defer server.Close()
		expired := errors.New("the login has expired")
		for says, token := range map[string]func(context.Context) (string, error){
			"Bearer: the login has expired": func(context.Context) (string, error) { return "", expired },
			"Bearer: the token is empty":    func(context.Context) (string, error) { return "", nil },
		} {
			if _, err := gosdk.Connect(t.Context(), server.URL, gosdk.ClientOptions{Bearer: token}); err == nil || !strings.Contains(err.Error(), says) {
				t.Error(err)
			}
		}
	})
}

// TestConnectRefused: the error names the revisions that were tried. If the server asks for a token, it says which
// option sets one.
func TestConnectRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for status, hint := range map[int]bool{http.StatusUnauthorized: true, http.StatusNotFound: false} {
			server := memnet.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) }), nil)
			defer server.Close()
			for revision, tried := range map[string]string{
				"": "in 2026-07-28, then 2025-11-25", mcptask.Revision20251125: "in 2025-11-25", mcptask.Revision20260728: "in 2026-07-28",
			} {
				_, err := gosdk.Connect(t.Context(), server.URL, gosdk.ClientOptions{Revision: revision})
				if err == nil || !strings.Contains(err.Error(), server.URL+" "+tried+":") || strings.Contains(err.Error(), "HTTPClient") != hint {
					t.Errorf("%d, %q: %v", status, revision, err)
				}
			}
		}
	})
}

// TestTTLBelowZero: a TTL below zero is refused before anything is sent.
func TestTTLBelowZero(t *testing.T) {
	url, _ := wiretest.Serve(t, taskserver.Options{})
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		ci := wiretest.Connect(t, url, revision, mcptask.Answerer{})
		_, err := ci.StartRunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/r"}, mcptask.TTL(-1))
		if err == nil || !strings.Contains(err.Error(), "the TTL is -1ns") {
			t.Errorf("%v", err)
		}
	})
}
