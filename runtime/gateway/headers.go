package gateway

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// These headers repeat parts of the body, so that an intermediary can route a request without
// reading the body (2026-07-28).
const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
)

// parameterHeaders is the prefix of the headers that repeat arguments of a call.
const parameterHeaders = "Mcp-Param-"

// checkRepeated refuses a protocol header that occurs twice with different values. A proxy might
// act on one value and the server on the other. net/http keeps repeated headers apart.
func checkRepeated(h http.Header) *mcptask.Error {
	for name, values := range h {
		switch name {
		case sessionHeader, http.CanonicalHeaderKey(versionHeader), methodHeader, nameHeader:
		default:
			if !strings.HasPrefix(name, parameterHeaders) {
				continue
			}
		}
		for _, value := range values {
			if value != values[0] {
				return mcptask.Errorf(mcptask.CodeInvalidRequest, "the header %s stands twice with different values: send it once", `"`+wire.ShortenName(name)+`"`)
			}
		}
	}
	return nil
}

// checkVersion compares the revision in the header with the one in the body (E-72, E-73).
func (s *speech) checkVersion(h http.Header, meta meta, revision string) *mcptask.Error {
	if header := h.Get(versionHeader); meta.Version != nil && meta.Capabilities != nil && header != *meta.Version {
		return mcptask.Errorf(spec.CodeHeaderMismatch, "the %s header is %q, but the body says %q", versionHeader, wire.ShortenName(header), wire.ShortenName(*meta.Version))
	}
	return s.checkMeta(meta, revision)
}

// checkMeta refuses a request that does not declare its revision and capabilities, or that uses
// another revision.
func (s *speech) checkMeta(meta meta, revision string) *mcptask.Error {
	switch {
	case meta.Version == nil:
		return mcptask.Errorf(mcptask.CodeInvalidParams, "params._meta[%q] is missing", spec.MetaProtocolVersion)
	case meta.Capabilities == nil:
		return mcptask.Errorf(mcptask.CodeInvalidParams, "params._meta[%q] is missing", spec.MetaClientCapabilities)
	case *meta.Version != revision:
		return s.unsupportedError(*meta.Version)
	}
	return nil
}

// checkNames compares Mcp-Method and, if named is true, Mcp-Name with the body (E-69 to E-72).
func checkNames(h http.Header, m *message, named bool) *mcptask.Error {
	if header := h.Get(methodHeader); header != m.Method {
		return mcptask.Errorf(spec.CodeHeaderMismatch, "the %s header is %q, but the body says %q", methodHeader, wire.ShortenName(header), wire.ShortenName(m.Method))
	}
	if !named {
		return nil
	}
	taskID, ok := m.Params.Text("taskId")
	if !ok {
		return mcptask.Errorf(mcptask.CodeInvalidParams, "params.taskId is missing")
	}
	header, ok := decodeHeader(h.Get(nameHeader))
	switch {
	case len(h.Values(nameHeader)) == 0 && taskID != "":
		return mcptask.Errorf(spec.CodeHeaderMismatch, "the %s header is missing: it has to name the task of the body", nameHeader)
	case !ok || header != taskID:
		return mcptask.Errorf(spec.CodeHeaderMismatch, "the %s header does not name the task of the body", nameHeader)
	}
	return nil
}

// decodeHeader decodes a header value, which is encoded if it is not safe in a header (E-71).
func decodeHeader(value string) (string, bool) {
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, true
	}
	encoded, ok = strings.CutSuffix(encoded, "?=")
	if !ok {
		return "", false
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	return string(decoded), err == nil
}

// modernStatus returns the HTTP status that 2026-07-28 prescribes for an error.
func modernStatus(err *mcptask.Error) int {
	switch err.Code {
	case mcptask.CodeMethodNotFound:
		return http.StatusNotFound
	case mcptask.CodeInvalidParams, mcptask.CodeInvalidRequest, spec.CodeHeaderMismatch,
		spec.CodeMissingClientCapability, spec.CodeUnsupportedProtocolVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
