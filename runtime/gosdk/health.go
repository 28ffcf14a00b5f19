package gosdk

import (
	"net/http"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// ReadyHandler answers probes of readiness: with 200 while the server should get requests, and else with 503 and the
// reason; see [taskserver.Server.Ready]. Serve it where callers do not reach it, such as on a port of its own.
func ReadyHandler(tasks *taskserver.Server) http.Handler { return probe(tasks.Ready) }

// LiveHandler answers probes of liveness: with 200, or with 503 and the reason if the process should be started anew; see
// [taskserver.Server.Live]. Serve it as [ReadyHandler].
func LiveHandler(tasks *taskserver.Server) http.Handler { return probe(tasks.Live) }

// probe answers with the result of check.
func probe(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // the prober may have left
	})
}
