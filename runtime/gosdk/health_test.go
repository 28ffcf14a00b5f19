package gosdk_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

func TestProbes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tasks, err := taskserver.New(taskserver.Options{})
		if err != nil {
			t.Fatal(err)
		}
		check := func(when string, ready int) {
			t.Helper()
			for _, probe := range []struct {
				name    string
				handler http.Handler
				want    int
			}{{"ready", gosdk.ReadyHandler(tasks), ready}, {"live", gosdk.LiveHandler(tasks), http.StatusOK}} {
				w := httptest.NewRecorder()
				probe.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
				if w.Code != probe.want {
					t.Errorf("%s: %s: %d, want %d: %s", when, probe.name, w.Code, probe.want, w.Body)
				}
			}
		}
		synctest.Wait() // the first lease
		check("at the start", http.StatusOK)
		if err := tasks.Close(); err != nil {
			t.Fatal(err)
		}
		check("after the end", http.StatusServiceUnavailable)
	})
}
