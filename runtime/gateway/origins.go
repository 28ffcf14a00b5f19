package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// exposedHeaders are the headers that a page of an allowed origin may read, beside those that every page may read.
const exposedHeaders = sessionHeader + ", " + versionHeader + ", WWW-Authenticate, Retry-After"

// preflightLife is how many seconds a browser may keep the answer to a preflight.
const preflightLife = "600"

// AllowOrigins lets the pages of the server's AllowedOrigins call next. It answers their preflights, and adds to every
// response the headers that let them read it. A gateway does so itself. Wrap a handler in front of a gateway if that
// handler may answer alone, as one that checks tokens does: a preflight has no token, and a page could not read the
// refusal of a token that has expired.
func AllowOrigins(s *taskserver.Backend, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answerOrigin(s, w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// answerOrigin adds the headers for a page of an allowed origin. It returns true if it has answered a preflight.
func answerOrigin(s *taskserver.Backend, w http.ResponseWriter, r *http.Request) bool {
	if len(s.Options().AllowedOrigins) == 0 {
		return false
	}
	h := w.Header()
	if !slices.Contains(h.Values("Vary"), "Origin") { // another AllowOrigins may stand in front
		h.Add("Vary", "Origin")
	}
	if !hasAllowedOrigin(s, r) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", exposedHeaders)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	// The tools' schemas and the user's own handlers may read headers that are not known here.
	if requested := r.Header.Values("Access-Control-Request-Headers"); len(requested) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(requested, ", "))
	}
	h.Set("Access-Control-Max-Age", preflightLife)
	w.WriteHeader(http.StatusNoContent)
	return true
}

// hasAllowedOrigin reports whether a request comes from a page of an allowed origin. Browsers write origins in small
// letters.
func hasAllowedOrigin(s *taskserver.Backend, r *http.Request) bool {
	origins := r.Header.Values("Origin")
	return len(origins) == 1 && slices.Contains(s.Options().AllowedOrigins, origins[0])
}
