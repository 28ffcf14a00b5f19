package gosdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 10

// origin is where a server is: what is for it goes nowhere else.
type origin struct{ scheme, host, port string }

func originOf(u *url.URL) origin {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return origin{u.Scheme, u.Hostname(), port}
}

// redirect is a http.Client's CheckRedirect: calls and answers go to the server that
// was connected to, and to no other that it names.
func redirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("gosdk: the server redirects more than %d times", maxRedirects)
	case originOf(r.URL) == originOf(first.URL):
		return nil
	case first.Method == http.MethodGet: // no stream, then
		return http.ErrUseLastResponse
	}
	return fmt.Errorf("gosdk: the server redirects to another, %s://%s: if you trust it, connect to that one", r.URL.Scheme, r.URL.Host)
}

// bearer is a http.RoundTripper that sends a token to one origin only.
type bearer struct {
	base  http.RoundTripper // nil is http.DefaultTransport
	to    origin
	token func(context.Context) (string, error)
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	base := b.base
	if base == nil {
		base = http.DefaultTransport
	}
	if originOf(r.URL) != b.to {
		return base.RoundTrip(r)
	}
	token, err := b.token(r.Context())
	if err == nil && token == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, fmt.Errorf("gosdk: ClientOptions.Bearer: %w", err)
	}
	out := r.Clone(r.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	return base.RoundTrip(out)
}
