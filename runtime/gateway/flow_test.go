package gateway

import (
	"net/http"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestFlowTokens checks that a token gives its flow once, and never after the request has ended.
func TestFlowTokens(t *testing.T) {
	server := newServer(t, mcptask.Options{})
	token, _ := OpenFlow(server, &Flow{})
	if TakeFlow(server, token) == nil || TakeFlow(server, token) != nil {
		t.Error("the token is not for a single use")
	}
	token = ""
	g := New(Config{Server: server, Stateless: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		token = r.Header.Get(FlowHeader) // and the SDK does not take the flow
	})})
	serve(g, newRequest(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+taskMeta+`}}`))
	if token == "" || TakeFlow(server, token) != nil {
		t.Errorf("the flow of token %q is left", token)
	}
}
