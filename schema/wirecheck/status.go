package wirecheck

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// This file checks a rule that is not in the schemas: which HTTP status goes with which message.

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
		x.request.Method == http.MethodOptions && x.code == http.StatusNoContent && x.Header().Get("Access-Control-Allow-Origin") != "",
		x.request.Method == http.MethodDelete && x.code == http.StatusOK, // mcp-go's
		x.code == http.StatusMethodNotAllowed, x.request.Method == http.MethodHead && x.code >= 400:
		return nil
	}
	return fmt.Errorf("an empty body: %.500s", x.body.read.Bytes())
}

// errorStatuses are the HTTP statuses of error responses in 2026-07-28 (E-72, E-73).
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
	// Statuses for requests that are refused before anything reads their content.
	transport := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge,
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

// foreignTexts are the prefixes of plain texts that the SDKs send, not this project.
var foreignTexts = map[int][]string{
	http.StatusBadRequest: {
		"Bad Request: ", // for a version or a missing session
		"Accept must contain ", "malformed Last-Event-ID ", "failed to replay events", "stream replay unsupported", "malformed payload: ", "JSON RPC not handled: ", "invalid request: missing ",
		"can't send Last-Event-ID ", "no server available",
	},
	http.StatusForbidden:            {"session user mismatch"},
	http.StatusUnauthorized:         {"no bearer token", "invalid token"},
	http.StatusNotFound:             {"session not found", "session is closing"},
	http.StatusMethodNotAllowed:     {"Method Not Allowed", "Streaming is disabled on this server"},
	http.StatusConflict:             {"stream ID conflicts with ongoing stream"},
	http.StatusUnsupportedMediaType: {"Content-Type must be "},
}

func checkForeignText(code int, text string) error {
	for _, begin := range foreignTexts[code] {
		if strings.HasPrefix(text, begin) {
			return nil
		}
	}
	return fmt.Errorf("an unknown plain text: %.500s", text)
}

// isForeignError recognizes errors of mcp-go, which have the ID null.
func isForeignError(data json.RawMessage) bool {
	var e struct{ Message string }
	return json.Unmarshal(data, &e) == nil && strings.HasPrefix(e.Message, "missing or invalid _meta field ")
}

// splitArray returns the elements of an array.
func splitArray(array json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	_ = json.Unmarshal(array, &list) // other JSON contains no messages
	return list
}
