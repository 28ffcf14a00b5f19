package gosdk

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// RequireBearerToken is like auth.RequireBearerToken of the SDK, but each 401 has the header WWW-Authenticate: Bearer, as
// HTTP requires. The SDK sends this header only if options has scopes or the URL of resource metadata. options may be
// nil. The handler gets the ResponseWriter of the request unchanged.
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
	if h := c.Header(); status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		challenge := "Bearer"
		if c.request.Header.Get("Authorization") != "" { // a request without a token gets no error code (RFC 6750, section 3.1)
			challenge += ` error="invalid_token"`
		}
		h.Set("WWW-Authenticate", challenge)
	}
	c.ResponseWriter.WriteHeader(status)
}
