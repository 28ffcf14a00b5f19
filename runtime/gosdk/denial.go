package gosdk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// These constants bound what a denial repeats and reads.
const (
	maxReason    = 300 // bytes
	maxChallenge = 8 << 10
	maxScopes    = 20
)

// denial is the error of a request that a server refuses with the HTTP status 401 or 403.
type denial struct {
	error
	status int
	reason string
	scopes []string
}

// newDenial returns the denial of a response. err is the error in its body, or its status.
func newDenial(response *http.Response, body []byte, err error) denial {
	d := denial{error: err, status: response.StatusCode}
	challenge := readChallenge(strings.Join(response.Header.Values("WWW-Authenticate"), ", "))
	if challenge["error"] == "insufficient_scope" {
		scopes := strings.Fields(cleanReason(challenge["scope"]))
		d.scopes = scopes[:min(len(scopes), maxScopes)]
	}
	var wire *mcptask.Error
	if errors.As(err, &wire) {
		d.reason = cleanReason(wire.Message)
		return d
	}
	d.reason = cmp.Or(cleanReason(challenge["error_description"]), readReason(body), cleanReason(challenge["error"]))
	if d.reason != "" {
		d.error = fmt.Errorf("%w: %s", err, d.reason)
	}
	return d
}

// Unwrap returns the error in the body, or the status.
func (d denial) Unwrap() error { return d.error }

// StatusCode returns the HTTP status.
func (d denial) StatusCode() int { return d.status }

// Reason returns why the server refuses the request, in the server's words, or "".
func (d denial) Reason() string { return d.reason }

// MissingScopes returns the scopes that a token for the request needs, if the server names them.
func (d denial) MissingScopes() []string { return d.scopes }

// challengeParam matches a parameter of a challenge.
var challengeParam = regexp.MustCompile(`([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))`)

// readChallenge returns the parameters of the challenges in a header. The first of a name counts.
func readChallenge(header string) map[string]string {
	params := map[string]string{}
	for _, m := range challengeParam.FindAllStringSubmatch(text.Shorten(header, maxChallenge), -1) {
		if name := strings.ToLower(m[1]); params[name] == "" {
			params[name] = cmp.Or(strings.ReplaceAll(m[2], `\`, ""), m[3])
		}
	}
	return params
}

// readReason returns the reason in the body of a response: its text, or what OAuth and others put in JSON. It returns ""
// for a page in HTML.
func readReason(body []byte) string {
	var object struct {
		Description string `json:"error_description"`
		Message     string `json:"message"`
	}
	body = bytes.TrimSpace(body)
	switch {
	case bytes.HasPrefix(body, []byte("<")):
		return ""
	case json.Unmarshal(body, &object) == nil && (object.Description != "" || object.Message != ""):
		return cleanReason(cmp.Or(object.Description, object.Message))
	}
	return cleanReason(string(body[:min(len(body), 4*maxReason)]))
}

// cleanReason returns the beginning of a text in one line, without control characters.
func cleanReason(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, reason)
	return text.Shorten(strings.Join(strings.Fields(reason), " "), maxReason)
}
