// Package model holds a package's declarations as plain data, ready to be rendered.
package model

import (
	"go/token"
	"go/types"
	"slices"
	"time"
)

// Package is a package that declares services, inputs, errors or enums of names.
type Package struct {
	Path, Name, Dir string
	Header          string // the first line of the generated file
	// Constraint is the build constraint of the declaring files, which the generated file shares.
	// It may be empty.
	Constraint string
	Services   []*Service
	Inputs     []*Input
	Errors     []*Error
	Enums      []*Enum
	// ImportedEnums are the types of other packages of which the schemas have names, in the order of packages and names.
	// They need the methods that the generated files of these packages have.
	ImportedEnums []*types.TypeName
	// Refused lists the parts of the tools that hosts or providers of models do not take.
	Refused []Refused
	// Side selects the half of the code to generate.
	Side Side
	// Taken holds the identifiers that the package's own files declare.
	Taken map[string]bool
	// Own holds the identifiers of the protocol that the package declares or imports itself, so that
	// the generated file does not declare them.
	Own map[string]bool
	// Position returns the place of a declaration, such as that of a field of a struct.
	Position func(token.Pos) token.Position
}

// Allow is a directive that allows what breaks callers or stored tasks.
type Allow struct {
	Pos    token.Position
	Rules  []string
	Reason string
}

// Refused is a part of a tool that hosts or providers of models do not take.
type Refused struct {
	Pos             token.Position
	Message, WayOut string
}

// MayAsk reports whether handlers of a service may ask questions while they run. They may if the package declares
// inputs, or if one of the service's tools is a workflow, whose inputs may be in another package.
func (p *Package) MayAsk(s *Service) bool { return len(p.Inputs) > 0 || len(s.Workflows()) > 0 }

// AsksInWorkflows reports whether workflows may ask for the inputs of the package. They may if one of its tools is a
// workflow. They also may if it has no services, because then a workflow's package and that of its tool can both import
// it.
func (p *Package) AsksInWorkflows() bool {
	return len(p.Services) == 0 || slices.ContainsFunc(p.Services, func(s *Service) bool { return len(s.Workflows()) > 0 })
}

// SpecFunc names the function that describes an input. It is exported if the file serves workflows,
// because they ask from other packages.
func (p *Package) SpecFunc(input string) string {
	if p.Side.Serves() && p.AsksInWorkflows() {
		return WorkflowSpecFunc(input)
	}
	return SpecFunc(input)
}

// HasOnlyEnums reports whether the package declares nothing but enums. Its generated file needs no runtime.
func (p *Package) HasOnlyEnums() bool {
	return len(p.Services) == 0 && len(p.Inputs) == 0 && len(p.Errors) == 0
}

// Side is the half of a package's code that is generated.
type Side int

// The sides.
const (
	Both Side = iota
	ServerSide
	ClientSide
)

// Serves reports whether the server's half is generated.
func (s Side) Serves() bool { return s != ClientSide }

// Calls reports whether the client's half is generated.
func (s Side) Calls() bool { return s != ServerSide }

// Service is a //mcptask:service interface.
type Service struct {
	Name        string
	Description string // for users of the tools
	Prefix      string
	Fallback    bool // it has the fallback tools: a tool may run as a task, and it does not say fallback=none
	Tools       []*Tool
	Pos         token.Position
	Allows      []Allow
}

// RunsTasks reports whether a tool of the service may run as a task.
func (s *Service) RunsTasks() bool {
	return slices.ContainsFunc(s.Tools, func(t *Tool) bool { return t.Policy.Task != Forbidden })
}

// Workflows returns the tools of the service that are workflows.
func (s *Service) Workflows() []*Tool {
	var tools []*Tool
	for _, tool := range s.Tools {
		if tool.Workflow != "" {
			tools = append(tools, tool)
		}
	}
	return tools
}

// FallbackTools returns the names of the tools for clients without tasks. The last one, task_answer,
// exists only if handlers may ask, see [Package.MayAsk]. Its name is reserved in any case, so that adding an input
// breaks no other service. task_list is listed only to callers with a principal.
func (s *Service) FallbackTools() []string {
	if !s.Fallback {
		return nil
	}
	return []string{s.Prefix + "task_status", s.Prefix + "task_result", s.Prefix + "task_cancel", s.Prefix + "task_list", s.Prefix + "task_answer"}
}

// Tool is a method of a service.
type Tool struct {
	Method      string
	Doc         string   // the method's doc comment, without directives
	Name        string   // on the wire, with the service's prefix
	Was         []string // former names on the wire
	Title       string
	Description string // the doc comment for models

	Task      bool       // the method takes a *mcptask.Task
	In        types.Type // nil if there is none
	Questions []*Input
	Out       types.Type // nil if the method returns only an error
	OutKind   OutKind

	// Workflow names the type of the workflow that is the tool's handler. It is empty if the handler is
	// written in Go.
	Workflow string

	// InputSchema and OutputSchema are JSON, laid out for people. InputSchema is empty if the tool has
	// no arguments, and OutputSchema unless OutKind is Structured.
	InputSchema, OutputSchema string
	// InputWritten and OutputWritten mean that the schema is not derived from the type.
	InputWritten, OutputWritten bool
	// InputWritesNull means that encoding/json may write null where InputSchema has none, so that clients need the schema.
	InputWritesNull bool
	// InputConst and OutputConst name the constants with the schemas; see [Package.NameSchemas].
	InputConst, OutputConst string

	Policy      Policy
	Annotations Annotations

	// Entry is the tool in a list of tools, as JSON laid out for people. EntryConst names its constant.
	// Both are empty for a declared tool.
	Entry, EntryConst string

	Pos    token.Position
	Allows []Allow
}

// OutKind is the way in which a tool returns its output.
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

// Policy has the limits and the rules for the runs of a tool. A zero duration or number is omitted
// from generated code.
type Policy struct {
	Task                             Support
	TTL, Poll, Grace, Wait, Deadline time.Duration
	Concurrency                      int
	Restart                          bool // onlost=restart
	RunChanged                       bool // onchange=run
	Keep                             bool // onleave=keep
	Attempts                         int  // only if Restart
	Immediate                        string
}

// WorkflowAttempts is the default number of attempts of a tool that is a workflow. It is high because
// the run that is lost only waited.
const WorkflowAttempts = 1000

// Defaults of the runtime for settings of a policy that are zero.
const (
	DefaultTTL      = 24 * time.Hour
	DefaultPoll     = time.Second
	DefaultAttempts = 5
)

// Annotations are a tool's hints. nil means that a hint is not set.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Input is a //mcptask:input type.
type Input struct {
	Name        string
	Description string // for users of the tools
	Type        types.Type
	Message     string
	Schema      string // JSON, laid out for people
	// SchemaConst names the constant with the schema.
	SchemaConst string
	Pos         token.Position
	Allows      []Allow
}

// Error is a //mcptask:error type.
type Error struct {
	Name        string
	Description string // for callers
	Code        string
	Type        types.Type
	Pointer     bool   // the pointer implements error, and not the value
	Schema      string // of its fields, JSON, laid out for people
	// SchemaConst names the constant with the schema.
	SchemaConst string
	Pos         token.Position
	Allows      []Allow
}

// Enum is an integer type under //mcptask:enum strings. Its values are the names of its constants in JSON.
type Enum struct {
	Name   string
	Consts []Const
}

// Const is a constant of an enum.
type Const struct {
	Name, Doc, Value string
}
