// Package schema holds the task surface of each MCP revision as data: its definitions as JSON
// Schema 2020-12, and facts that JSON Schema cannot express (methods, error codes, statuses,
// capabilities), with their sources. The package reads the data, and compares schema files.
//
// All functions are pure and safe for concurrent use.
package schema

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed */surface.json */tasks.schema.json */provenance.json */rules.txt
var files embed.FS

// Surface describes the tasks of one revision. Its JSON form is surface.json.
//
// Every Doc in it, except that of a definition, is a sentence that starts with a verb ("Means that
// …") and follows the name that it describes.
type Surface struct {
	// Revision is the name of the revision, such as "2025-11-25" or "sep-1686".
	Revision string `json:"revision"`
	// Standing is the official status of the revision.
	Standing Standing `json:"standing"`
	// ProtocolVersion is the version sent on the wire. It is empty if the revision has none of its
	// own.
	ProtocolVersion string `json:"protocolVersion"`
	// Date is the date of publication, such as 2025-11-25.
	Date string `json:"date"`
	// About describes the revision in one line.
	About string `json:"about"`
	// Document holds the definitions of tasks.schema.json.
	Document `json:"-"`
	// Compared lists, for a definition with parts that do not concern tasks, the parts that follow
	// the official schema, as JSON pointers. The list is empty for a definition of our own. A
	// definition without an entry follows the official schema as a whole.
	Compared map[string][]string `json:"compared"`
	// Patched lists the places that deliberately differ from the official schema.
	Patched []Patch `json:"patched"`
	// Statuses are in lifecycle order.
	Statuses   []Status    `json:"statuses"`
	ErrorCodes []ErrorCode `json:"errorCodes"`
	// Extension is the extension that carries tasks. It is empty if tasks are part of the core.
	Extension     Extension `json:"extension"`
	Methods       []Method  `json:"methods"`
	Notifications []Method  `json:"notifications"`
	MetaKeys      []MetaKey `json:"metaKeys"`
	// ServerCapabilities is compact JSON that is merged into the server's capabilities.
	ServerCapabilities json.RawMessage `json:"serverCapabilities"`
	// ClientCapabilities is compact JSON that is merged into the client's capabilities.
	ClientCapabilities json.RawMessage `json:"clientCapabilities"`
	Provenance         Provenance      `json:"-"`
}

// Patch is a place at which a surface deliberately differs from the official schema, because the
// specification's text contradicts the schema. The official value at this place does not count as a
// difference.
type Patch struct {
	Definition string `json:"definition"`
	// Pointer is the place in the definition, as a JSON pointer.
	Pointer string `json:"pointer"`
	// Official is the official schema's value at that place.
	Official json.RawMessage `json:"official"`
	// Reason justifies the patch in a sentence.
	Reason string `json:"reason"`
}

// Status is a value of a task's status.
type Status struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Terminal means that the status is final.
	Terminal bool `json:"terminal"`
	// Next lists the statuses that may follow.
	Next []string `json:"next"`
}

// ErrorCode is a JSON-RPC error code.
type ErrorCode struct {
	// Name is a Go-like name without a prefix, such as "InvalidParams".
	Name string `json:"name"`
	Code int    `json:"code"`
	Doc  string `json:"doc"`
}

// Extension is an extension of the protocol.
type Extension struct {
	// Name is a Go-like name, such as "Tasks".
	Name string `json:"name"`
	// Key is the key in the extensions member of capabilities.
	Key string `json:"key"`
	Doc string `json:"doc"`
}

// Method is a request or a notification.
type Method struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// MetaKey is a key of a _meta object.
type MetaKey struct {
	// Name is a Go-like name, such as "RelatedTask".
	Name string `json:"name"`
	Key  string `json:"key"`
	Doc  string `json:"doc"`
}

// Load reads the surface of a revision. The error for an unknown revision lists the known ones.
func Load(revision string) (*Surface, error) {
	if !slices.Contains(Revisions(), revision) {
		return nil, fmt.Errorf("unknown revision %q; known revisions are %s", revision, strings.Join(Revisions(), ", "))
	}
	read := func(name string) []byte {
		data, err := files.ReadFile(path.Join(revision, name))
		if err != nil {
			return nil // reported as empty JSON by the reader below
		}
		return data
	}
	surface, err := ParseSurface(read("tasks.schema.json"), read("surface.json"), read("provenance.json"))
	if err != nil {
		return nil, fmt.Errorf("schema/%s: %w", revision, err)
	}
	return surface, nil
}

// ParseSurface reads a surface from the contents of its three files,
// tasks.schema.json, surface.json and provenance.json.
func ParseSurface(definitions, surface, provenance []byte) (*Surface, error) {
	document, err := Parse(definitions)
	if err != nil {
		return nil, fmt.Errorf("tasks.schema.json: %w", err)
	}
	s := &Surface{Document: *document}
	if err := decodeStrict(surface, s); err != nil {
		return nil, fmt.Errorf("surface.json: %w", err)
	}
	if err := decodeStrict(provenance, &s.Provenance); err != nil {
		return nil, fmt.Errorf("provenance.json: %w", err)
	}
	if s.ServerCapabilities, err = compactJSON(s.ServerCapabilities); err != nil {
		return nil, fmt.Errorf("surface.json: serverCapabilities: %w", err)
	}
	if s.ClientCapabilities, err = compactJSON(s.ClientCapabilities); err != nil {
		return nil, fmt.Errorf("surface.json: clientCapabilities: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("surface.json: %w", err)
	}
	return s, nil
}

// check checks the names in surface.json against tasks.schema.json.
func (s *Surface) check() error {
	for name := range s.Compared {
		if _, ok := s.Definition(name); !ok {
			return fmt.Errorf("compared names the definition %q, which tasks.schema.json does not have", name)
		}
	}
	for _, patch := range s.Patched {
		if definition, _ := s.Definition(patch.Definition); valueAt(definition.value, patch.Pointer) == nil || len(patch.Official) == 0 {
			return fmt.Errorf("patched: tasks.schema.json has nothing at %s of %q, or the official value is missing", patch.Pointer, patch.Definition)
		}
	}
	if s.Standing != "" && !slices.Contains(standings, s.Standing) {
		return fmt.Errorf("standing is %q, not one of %q", s.Standing, standings)
	}
	return nil
}

func decodeStrict(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func compactJSON(raw json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
