package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcptaskgen/mcptaskgen/examples/oauth/releases"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// signIn returns what signs a user in at the authorization server, as a browser would.
func signIn(user string) auth.AuthorizationCodeFetcher {
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL+"&login_hint="+url.QueryEscape(user), nil)
		if err != nil {
			return nil, err
		}
		response, err := browser.Do(r)
		if err != nil {
			return nil, err
		}
		_ = response.Body.Close() // only its header matters
		back, err := response.Location()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", response.Status, err)
		}
		return &auth.AuthorizationResult{Code: back.Query().Get("code"), State: back.Query().Get("state")}, nil
	}
}

// TestGoSDK goes through the whole flow with the client of the Go SDK: it finds the authorization server, registers, signs
// its user in, and asks for more scopes when a tool needs them. The project's client then uses the same token.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const redirect = "http://127.0.0.1:1/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "test", RedirectURIs: []string{redirect}},
		},
		AuthorizationCodeFetcher: signIn("alice"),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url, OAuthHandler: handler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }() // the server may be gone
	for _, params := range []*mcp.CallToolParams{
		{Name: "list_approvals"}, {Name: "list_approvals"}, {Name: "ship_release", Arguments: releases.Release{Service: "web", Version: "1"}},
	} {
		if result, err := session.CallTool(t.Context(), params); err != nil || result.IsError != (params.Name == "ship_release") { // alice may not ship web
			t.Fatalf("%s: %+v, %v", params.Name, result, err)
		}
	}
	s.as.mu.Lock()
	asked := slices.Clone(s.as.asked)
	s.as.mu.Unlock()
	if want := []string{"releases", "releases releases:approve", "releases releases:approve releases:ship"}; !slices.Equal(asked, want) {
		t.Errorf("the client asked for %q, want %q", asked, want)
	}

	source, err := handler.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := gosdk.Connect(t.Context(), s.url, gosdk.ClientOptions{Bearer: func(context.Context) (string, error) {
		token, err := source.Token()
		if err != nil {
			return "", err
		}
		return token.AccessToken, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := releases.NewReleasesClient(conn).StartShipRelease(t.Context(), billing); err != nil {
		t.Error(err)
	}
}

// TestTokenIsRefreshed waits for a task for longer than each token is valid. The server ends the streams of old tokens.
func TestTokenIsRefreshed(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) { testRefreshed(t, revision) })
	}
}

func testRefreshed(t *testing.T, revision string) {
	t.Parallel()
	s := serve(t)
	var mu sync.Mutex
	var token string
	var expires time.Time
	made := make(chan struct{}, 100)
	bearer := func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Until(expires) < time.Second {
			expires = time.Now().Add(3 * time.Second)
			token = s.as.sign(jwt.MapClaims{"sub": "alice", "scope": "releases releases:ship", "exp": expires.Unix()}, nil)
			made <- struct{}{}
		}
		return token, nil
	}
	conn, err := gosdk.Connect(t.Context(), s.url, gosdk.ClientOptions{Revision: revision, Bearer: bearer})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call, err := releases.NewReleasesClient(conn).StartShipRelease(t.Context(), billing)
	if err != nil {
		t.Fatal(err)
	}
	reported := make(chan error, 1)
	go func() {
		report, err := call.Wait(t.Context())
		if err == nil && report.ApprovedBy != "carol" {
			err = fmt.Errorf("the report is %+v", report)
		}
		reported <- err
	}()
	for range 2 {
		<-made
	}
	carol := s.connect(revision, "carol", rights["carol"]...)
	if _, err := carol.DecideApproval(t.Context(), releases.DecideInput{ID: openApproval(t, carol).ID, Approve: true}); err != nil {
		t.Error(err)
	}
	if err := <-reported; err != nil {
		t.Errorf("%s: %v", revision, err)
	}
}
