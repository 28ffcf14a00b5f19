package wirecheck

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// What the schemas leave open of the transport: which HTTP status goes with
// which message.

// checkEmpty checks a response without a body.
func (x *reply) checkEmpty(left bool) error {
	post := x.request.Method == http.MethodPost
	switch {
	case left:
		return nil
	case post && x.code == http.StatusAccepted:
		if slices.ContainsFunc(x.requests(), func(a *pendingRequest) bool { return a.method != "" }) {
			return fmt.Errorf("a request gets no answer: %.500s", x.body.read.Bytes())
		}
		return nil
	case x.request.Method == http.MethodDelete && x.code == http.StatusNoContent,
		x.request.Method == http.MethodDelete && x.code == http.StatusOK, // mcp-go's
		x.code == http.StatusMethodNotAllowed, x.request.Method == http.MethodHead && x.code >= 400:
		return nil
	}
	return fmt.Errorf("an empty body: %.500s", x.body.read.Bytes())
}

// statuses are those of error responses of 2026-07-28 (E-72, E-73).
var errorStatuses = map[int]int{
	-32601: http.StatusNotFound, -32602: http.StatusBadRequest, -32600: http.StatusBadRequest, -32700: http.StatusBadRequest,
	-32020: http.StatusBadRequest, -32021: http.StatusBadRequest, -32022: http.StatusBadRequest,
}

// checkStatus checks the HTTP status of a JSON body.
func (x *reply) checkStatus(message json.RawMessage) error {
	var m struct {
		ID    json.RawMessage
		Error *struct{ Code int }
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return err
	}
	// Refused for what the request is, before anyone looks at what it says.
	transport := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadRequest}
	switch {
	case m.Error == nil && x.code != http.StatusOK:
		return fmt.Errorf("a result with this status: %.500s", message)
	case m.Error == nil, x.code == http.StatusOK && m.ID != nil && x.find(sameID(m.ID)) != nil && x.find(sameID(m.ID)).revision != Modern:
		return nil
	case x.code == http.StatusOK && errorStatuses[m.Error.Code] != 0:
		return fmt.Errorf("the error belongs to HTTP %d: %.500s", errorStatuses[m.Error.Code], message)
	case x.code != http.StatusOK && !slices.Contains(transport, x.code):
		return fmt.Errorf("an error with this status: %.500s", message)
	}
	return nil
}

// foreign are the plain texts that are not ours: the SDKs' own refusals, by
// how they begin.
var foreignTexts = map[int][]string{
	http.StatusBadRequest: {
		"Bad Request: ", // of a version, a session that is missing
		"Accept must contain ", "malformed Last-Event-ID ", "failed to replay events", "stream replay unsupported", "malformed payload: ", "JSON RPC not handled: ", "invalid request: missing ",
	},
	http.StatusUnauthorized:     {"no bearer token"},
	http.StatusNotFound:         {"session not found", "session is closing"},
	http.StatusMethodNotAllowed: {"Method Not Allowed"},
	http.StatusConflict:         {"stream ID conflicts with ongoing stream"},
}

func checkForeignText(code int, text string) error {
	for _, begin := range foreignTexts[code] {
		if strings.HasPrefix(text, begin) {
			return nil
		}
	}
	return fmt.Errorf("plain text that is in no list: %.500s", text)
}

// isForeignError knows the errors of mcp-go, which gives them the ID null.
func isForeignError(data json.RawMessage) bool {
	var e struct{ Message string }
	return json.Unmarshal(data, &e) == nil && strings.HasPrefix(e.Message, "missing or invalid _meta field ")
}

// splitArray are those of an array.
func splitArray(array json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	_ = json.Unmarshal(array, &list) // what is none is no message either
	return list
}
