package gosdk

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
)

// RequireBearerToken is like auth.RequireBearerToken of the SDK, but each refusal says why in the header WWW-Authenticate,
// as HTTP and OAuth require. The SDK sends this header only if options has scopes or the URL of resource metadata, and
// without the error by which clients know that they have to ask for more scopes. An error of verify that is not the token's
// fault becomes a 503, since the client can try again, and not the SDK's 500. options may be nil. The handler gets the
// ResponseWriter of the request unchanged.
func RequireBearerToken(verify auth.TokenVerifier, options *auth.RequireBearerTokenOptions) func(http.Handler) http.Handler {
	require := auth.RequireBearerToken(verify, options)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			admit := func(_ http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) }
			require(http.HandlerFunc(admit)).ServeHTTP(&challenger{w, r}, r)
		})
	}
}

// challenger is the ResponseWriter of a request that may be refused.
type challenger struct {
	http.ResponseWriter
	request *http.Request
}

// WriteHeader implements http.ResponseWriter.
func (c *challenger) WriteHeader(status int) {
	h := c.Header()
	var params []string
	switch {
	case status == http.StatusForbidden:
		params = append(params, `error="insufficient_scope"`)
	case status == http.StatusUnauthorized && c.request.Header.Get("Authorization") != "": // a request without a token gets no error code (RFC 6750, section 3.1)
		params = append(params, `error="invalid_token"`)
	}
	if _, others, ok := strings.Cut(h.Get("WWW-Authenticate"), " "); ok {
		params = append(params, others)
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		h.Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(params, ", ")))
	}
	if status == http.StatusInternalServerError { // verify could not tell
		status = http.StatusServiceUnavailable
	}
	c.ResponseWriter.WriteHeader(status)
}

// RequireToolScopes refuses a call of a tool if the bearer token lacks one of the tool's scopes. The refusal is an HTTP 403
// that names the scopes, so that the client can ask its user for them and repeat the call. No task is made. An entry may
// have a former name of its tool. Tools without an entry need no scope here: look at the map when you add a tool, since a
// name that no tool has is no error. The scopes of a tool must include those that [RequireBearerToken] requires, because
// some clients ask for no others then. Requests about tasks that exist are not checked: the tasks belong to their principal.
//
// handler is that of [NewHandler], and [RequireBearerToken] stands in front. metadataURL is the ResourceMetadataURL of its
// options, or "". RequireToolScopes panics if handler is another one, because nothing would check the calls.
func RequireToolScopes(handler http.Handler, scopes map[string][]string, metadataURL string) http.Handler {
	g, ok := handler.(*gateway.Gateway)
	if !ok {
		panic(fmt.Sprintf("gosdk: RequireToolScopes needs the handler of NewHandler, and got %T", handler))
	}
	return g.CheckCalls(func(ctx context.Context, tool string) (challenge, reason string) {
		var granted []string
		if token := auth.TokenInfoFromContext(ctx); token != nil {
			granted = token.Scopes
		}
		isMissing := func(scope string) bool { return !slices.Contains(granted, scope) }
		if !slices.ContainsFunc(scopes[tool], isMissing) {
			return "", ""
		}
		needed := strings.Join(scopes[tool], " ")
		challenge = fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, needed)
		if metadataURL != "" {
			challenge += fmt.Sprintf(`, resource_metadata=%q`, metadataURL)
		}
		return challenge, "the token needs the scopes " + needed
	})
}
