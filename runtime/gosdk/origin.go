package gosdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// maxRedirects bounds the redirects of one request.
const maxRedirects = 10

// origin identifies a server. Messages and tokens for one origin must not reach another.
type origin struct{ scheme, host, port string }

func originOf(u *url.URL) origin {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return origin{u.Scheme, u.Hostname(), port}
}

// checkRedirect is the CheckRedirect of an http.Client. It keeps calls and answers on the server
// that the client connected to.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("gosdk: the server redirects more than %d times", maxRedirects)
	case originOf(r.URL) == originOf(first.URL):
		return nil
	case first.Method == http.MethodGet: // the server then has no stream
		return http.ErrUseLastResponse
	}
	return fmt.Errorf("gosdk: the server redirects to another, %s://%s: if you trust that server, connect to it directly", r.URL.Scheme, r.URL.Host)
}

// bearerTransport is an http.RoundTripper that sends a token to one origin only.
type bearerTransport struct {
	base  http.RoundTripper
	to    origin
	token func(context.Context) (string, error)
}

// RoundTrip implements http.RoundTripper.
func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if originOf(r.URL) != b.to {
		return b.base.RoundTrip(r)
	}
	token, err := b.token(r.Context())
	if err == nil && token == "" {
		err = errors.New("the token is empty")
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close it
		}
		return nil, fmt.Errorf("gosdk: ClientOptions.Bearer: %w", err)
	}
	out := r.Clone(r.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	return b.base.RoundTrip(out)
}
