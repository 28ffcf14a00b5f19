package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// Nobody fills the log from outside: neither a caller who is refused, nor a client with what it
// says on a pipe.
func TestLogStaysSmall(t *testing.T) {
	const flood, most = 300, 10_000 // bytes of log: a few lines
	inBubble(t, "refused principals", func(t *testing.T) {
		var log strings.Builder
		server, err := mcptask.NewServer(mcptask.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Principal: func(context.Context) (string, error) {
				return "", errors.New("who are you? " + strings.Repeat("x", 1000))
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		g := New(Config{Server: server})
		ask := func() {
			w := httptest.NewRecorder()
			wirecheck.Handler(t, g).ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
			if w.Code != http.StatusForbidden {
				t.Fatal(w.Code)
			}
		}
		for range flood {
			ask()
		}
		time.Sleep(time.Second)
		ask()
		if text := log.String(); len(text) > most || !strings.Contains(text, "without a principal") || !strings.Contains(text, "omitted=299") {
			t.Errorf("%d bytes: %.1000s", len(text), text)
		}
	})
	inBubble(t, "a pipe", func(t *testing.T) {
		var log strings.Builder
		server, err := mcptask.NewServer(mcptask.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		p := newPiped(t, server, 0)
		for range flood {
			p.say(`{"jsonrpc":"2.0","result":{}}`)
			p.say(`{"jsonrpc":"1.0","id":1,"result":{}}`)
		}
		if log.Len() > most {
			t.Errorf("%d bytes", log.Len())
		}
		_ = p.in.Close()
	})
}

func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { bubble.Test(t, test) })
}
