package gosdk_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

func TestProbes(t *testing.T) {
	tasks, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(handler http.Handler) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		return w.Code
	}
	for ask(gosdk.ReadyHandler(tasks)) != http.StatusOK { // until the first lease
		select {
		case <-t.Context().Done():
			t.Fatal("the server is never ready")
		default:
		}
	}
	if code := ask(gosdk.LiveHandler(tasks)); code != http.StatusOK {
		t.Errorf("live: %d", code)
	}
	if err := tasks.Close(); err != nil {
		t.Fatal(err)
	}
	if code := ask(gosdk.ReadyHandler(tasks)); code != http.StatusServiceUnavailable {
		t.Errorf("ready after the end: %d", code)
	}
	if code := ask(gosdk.LiveHandler(tasks)); code != http.StatusOK {
		t.Errorf("live after the end: %d", code)
	}
}
