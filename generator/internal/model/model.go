// Package model is a declaration as plain data: what was read, ready to be written.
package model

import (
	"go/types"
	"time"
)

// Package is a package that declares services or inputs.
type Package struct {
	Path, Name, Dir string
	// Constraint is the build constraint of the declaring files, which the generated file shares;
	// empty where there is none.
	Constraint string
	Services   []*Service
	Inputs     []*Input
	// Side is the half that is written.
	Side Side
	// Taken are the identifiers that the package's own files declare.
	Taken map[string]bool
}

// Side says which half of a package's code is written.
type Side int

// The halves.
const (
	Both Side = iota
	ServerSide
	ClientSide
)

// Serves tells whether the server's half is written.
func (s Side) Serves() bool { return s != ClientSide }

// Calls tells whether the client's half is written.
func (s Side) Calls() bool { return s != ServerSide }

// Service is a //mcptask:service interface.
type Service struct {
	Name     string
	Doc      string // the interface's doc comment, without directives
	Prefix   string
	Fallback bool // fallback=tools
	Tools    []*Tool
}

// Tool is a method of a service.
type Tool struct {
	Method      string
	Doc         string // the method's doc comment, without directives
	Name        string // on the wire, with the service's prefix
	Title       string
	Description string

	Task      bool       // the method takes a *mcptask.Task
	In        types.Type // nil where there is none
	Questions []*Input
	Out       types.Type // nil where the method returns an error alone
	OutKind   OutKind

	InputSchema  string // JSON, laid out for people
	OutputSchema string // empty where OutKind is not Structured

	Policy      Policy
	Annotations Annotations
}

// OutKind is what becomes of a tool's output.
type OutKind int

// The kinds of output.
const (
	Nothing OutKind = iota
	Structured
	Text
	Content
)

// Support is a tool's task=.
type Support string

// The values of task=.
const (
	Forbidden Support = "forbidden"
	Optional  Support = "optional"
	Required  Support = "required"
)

// Policy is how a tool runs; a zero duration is not written.
type Policy struct {
	Task                             Support
	TTL, Poll, Grace, Wait, Deadline time.Duration
	Restart                          bool // onlost=restart
	Immediate                        string
}

// Annotations are a tool's hints; nil says nothing.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Input is a //mcptask:input type.
type Input struct {
	Name    string
	Doc     string
	Type    types.Type
	Message string
	Schema  string // JSON, laid out for people
}
