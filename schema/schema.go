// Package schema holds the task surface of each MCP revision as data: its definitions as JSON
// Schema 2020-12, facts that JSON Schema cannot express (methods, error codes, statuses,
// capabilities), and the sources of these facts. The package reads the data and compares it with
// the official schema files.
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

// Surface is what one revision says about tasks. Its JSON form is surface.json.
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
	// Definitions are the schema's $defs in file order.
	Definitions []Definition `json:"-"`
	// Compared lists, for a definition with parts that do not concern tasks, the parts that follow
	// the official schema, as JSON pointers. The list is empty for a definition of our own. A
	// definition without an entry follows the official schema as a whole.
	Compared map[string][]string `json:"compared"`
	// Core lists definitions of the protocol itself that tasks use. Adding or removing them does
	// not change tasks.
	Core []string `json:"core"`
	// Patched lists the places that deliberately differ from the official schema.
	Patched []Patch `json:"patched"`
	// Statuses are in lifecycle order.
	Statuses   []Status    `json:"statuses"`
	ErrorCodes []ErrorCode `json:"errorCodes"`
	// Extension is the extension that carries tasks. It is empty if tasks are part of the core.
	Extension     Extension      `json:"extension"`
	Methods       []Method       `json:"methods"`
	Notifications []Notification `json:"notifications"`
	MetaKeys      []MetaKey      `json:"metaKeys"`
	Headers       []Header       `json:"headers"`
	// ServerCapabilities is compact JSON that is merged into the server's capabilities.
	ServerCapabilities json.RawMessage `json:"serverCapabilities"`
	// ClientCapabilities is compact JSON that is merged into the client's capabilities.
	ClientCapabilities json.RawMessage `json:"clientCapabilities"`
	// Capabilities are the places in which both parties declare capabilities.
	Capabilities CapabilityPlaces `json:"capabilities"`
	Fields       []Field          `json:"fields"`
	Refusals     []Refusal        `json:"refusals"`
	// TaskParams lists the definitions of params in the whole official schema that have a member
	// task. It is empty if the revision requests tasks in another way.
	TaskParams []string `json:"taskParams"`
	// Aspects answers questions about how tasks work that names and types do not answer, by
	// canonical name.
	Aspects    map[string]string `json:"aspects"`
	Provenance Provenance        `json:"-"`

	skipped map[string]bool // definitions excluded from this comparison
}

// Status is a value of a task's status.
type Status struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Terminal means that the status is final.
	Terminal bool `json:"terminal"`
	// Means lists the canonical meanings of the status, the main one first.
	Means []string `json:"means"`
	// Next lists the statuses that may follow.
	Next []string `json:"next"`
}

// ErrorCode is a JSON-RPC error code.
type ErrorCode struct {
	// Name is a Go-like name without a prefix, such as "InvalidParams".
	Name string `json:"name"`
	Code int    `json:"code"`
	Doc  string `json:"doc"`
	// HTTPStatus is the status of the error over HTTP. It is 0 if the revision specifies none.
	HTTPStatus int `json:"httpStatus"`
}

// Extension is an extension of the protocol.
type Extension struct {
	// Name is a Go-like name, such as "Tasks".
	Name string `json:"name"`
	// Key is the key in the extensions member of capabilities.
	Key string `json:"key"`
	Doc string `json:"doc"`
}

// Direction says who sends a message.
type Direction string

// Directions of a message.
const (
	ClientToServer Direction = "client-to-server"
	ServerToClient Direction = "server-to-client"
	BothDirections Direction = "both"
)

// Method is a request.
type Method struct {
	Name      string    `json:"name"`
	Direction Direction `json:"direction"`
	// Params and Result name definitions. A request definition stands for its inline params. Both
	// are empty for a method that does not belong to tasks.
	Params string `json:"params"`
	Result string `json:"result"`
	// Creates means that the answer may be a task instead of the result.
	Creates bool   `json:"creates"`
	Doc     string `json:"doc"`
	// Serves lists the canonical purposes of the method.
	Serves []string `json:"serves"`
}

// Notification is a message without an answer.
type Notification struct {
	Name      string    `json:"name"`
	Direction Direction `json:"direction"`
	Params    string    `json:"params"`
	Doc       string    `json:"doc"`
	// Serves lists the canonical purposes of the notification.
	Serves []string `json:"serves"`
}

// MetaKey is a key of a _meta object.
type MetaKey struct {
	// Name is a Go-like name, such as "RelatedTask".
	Name string `json:"name"`
	Key  string `json:"key"`
	Doc  string `json:"doc"`
	// Means is the canonical name of the key.
	Means string `json:"means"`
}

// Header is an HTTP header.
type Header struct {
	Name string `json:"name"`
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
	s := &Surface{Definitions: document.Definitions}
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
	if err := s.checkNames(); err != nil {
		return nil, fmt.Errorf("surface.json: %w", err)
	}
	if err := s.checkMeanings(); err != nil {
		return nil, fmt.Errorf("surface.json: %w", err)
	}
	return s, nil
}

// Definition returns the definition of that name.
func (s *Surface) Definition(name string) (Definition, bool) {
	return find(s.Definitions, func(d Definition) bool { return d.Name == name })
}

// find returns the first item that is the wanted one.
func find[T any](list []T, wanted func(T) bool) (item T, ok bool) {
	if i := slices.IndexFunc(list, wanted); i >= 0 {
		return list[i], true
	}
	return item, false
}

// checkNames checks the names in surface.json against tasks.schema.json.
func (s *Surface) checkNames() error {
	check := func(where, name string) error {
		if _, ok := s.Definition(name); name != "" && !ok {
			return fmt.Errorf("%s names the definition %q, which tasks.schema.json does not have", where, name)
		}
		return nil
	}
	for _, m := range s.Methods {
		for _, name := range []string{m.Params, m.Result} {
			if err := check("method "+m.Name, name); err != nil {
				return err
			}
		}
	}
	for _, n := range s.Notifications {
		if err := check("notification "+n.Name, n.Params); err != nil {
			return err
		}
	}
	for _, name := range s.Core {
		if err := check("core", name); err != nil {
			return err
		}
	}
	for name := range s.Compared {
		if err := check("compared", name); err != nil {
			return err
		}
	}
	own := (&Document{Definitions: s.Definitions}).valuesByName()
	for _, patch := range s.Patched {
		if err := check("patched", patch.Definition); err != nil {
			return err
		}
		if _, ok := valueAt(own[patch.Definition], patch.Pointer); !ok || len(patch.Official) == 0 {
			return fmt.Errorf("patched: %s has nothing at %s, or the official value is missing", patch.Definition, patch.Pointer)
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
