package gateway

import (
	"context"
	"fmt"
	"net/http"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// CallCheck decides whether a request may call a tool, by the credentials in its context. It is asked for the tool's present
// name and then for each former one, whatever name the client has used: a rename takes no check away. A challenge other
// than "" refuses the call: it is the header WWW-Authenticate of an HTTP 403. reason is for people.
type CallCheck = func(ctx context.Context, tool string) (challenge, reason string)

type callCheckKey struct{}

// CheckCalls returns a handler that is like g, but checks each tools/call over HTTP, before a task exists. It also checks
// the tools of the SDK behind the gateway.
func (g *Gateway) CheckCalls(check CallCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callCheckKey{}, check)))
	})
}

// findCallCheck returns the check of a request's calls, or nil if there is none.
func findCallCheck(r *http.Request) CallCheck {
	check, _ := r.Context().Value(callCheckKey{}).(CallCheck)
	return check
}

// admitCall returns false if it has refused the message, which is a call that the check refuses.
func (x *httpExchange) admitCall() bool {
	check := findCallCheck(x.r)
	if check == nil || x.m.Method != "tools/call" {
		return true
	}
	called, _ := x.m.Params.Text("name")
	names := []string{called}
	if tool, ok := x.g.server.Tool(called); ok {
		names = append([]string{tool.Name}, tool.Was...)
	}
	for _, name := range names {
		challenge, reason := check(x.r.Context(), name)
		if challenge == "" {
			continue
		}
		x.g.server.AuditRefusal(x.r.Context(), x.caller(), fmt.Sprintf("%.100s", names[0]), reason)
		x.w.Header().Set("WWW-Authenticate", challenge)
		refuse(x.w, http.StatusForbidden, x.replyID(), mcptask.Errorf(mcptask.CodeInvalidRequest, "the tool %.100q may not be called: %s", names[0], reason))
		return false
	}
	return true
}
