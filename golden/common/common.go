// Package common has a tool for each of the commonest shapes of arguments and results in published MCP servers in Go, such as
// those of Grafana, GitHub, Kubernetes and Terraform and the examples of the SDKs. Package providers checks their schemas.
package common

import (
	"context"
	"encoding/json"
	"time"
)

//go:generate go tool mcptaskgen

// Common has a tool for each shape. Most return what they get.
//
//mcptask:service
type Common interface {
	// RequiredStrings takes strings that must be there.
	RequiredStrings(ctx context.Context, in RequiredStrings) (RequiredStrings, error)
	// OptionalStrings takes strings that may be left out.
	OptionalStrings(ctx context.Context, in OptionalStrings) (OptionalStrings, error)
	// Integers takes whole numbers of several sizes.
	Integers(ctx context.Context, in Integers) (Integers, error)
	// Floats takes numbers with fractions.
	Floats(ctx context.Context, in Floats) (Floats, error)
	// Switches takes booleans.
	Switches(ctx context.Context, in Switches) (Switches, error)
	// RequiredList takes a list of strings that must be there.
	RequiredList(ctx context.Context, in RequiredList) (RequiredList, error)
	// OptionalList takes a list of strings that may be left out.
	OptionalList(ctx context.Context, in OptionalList) (OptionalList, error)
	// NumberList takes a list of whole numbers.
	NumberList(ctx context.Context, in NumberList) (NumberList, error)
	// Edits takes a list of structs.
	Edits(ctx context.Context, in Edits) (Edits, error)
	// Pointers takes a list of pointers to structs.
	Pointers(ctx context.Context, in Pointers) (Pointers, error)
	// Labels takes a map of strings.
	Labels(ctx context.Context, in Labels) (Labels, error)
	// Lists takes a map of lists.
	Lists(ctx context.Context, in Lists) (Lists, error)
	// Resource takes a map of any values, such as a manifest.
	Resource(ctx context.Context, in Resource) (Resource, error)
	// Codes takes maps with keys that are not strings.
	Codes(ctx context.Context, in Codes) (Codes, error)
	// OptionalPointers takes pointers that may be left out.
	OptionalPointers(ctx context.Context, in OptionalPointers) (OptionalPointers, error)
	// PlainPointers takes pointers whose tags do not say omitempty.
	PlainPointers(ctx context.Context, in PlainPointers) (PlainPointers, error)
	// RequiredPointers takes pointers that must be there.
	RequiredPointers(ctx context.Context, in RequiredPointers) (Switches, error)
	// Nested takes structs in structs.
	Nested(ctx context.Context, in Nested) (Nested, error)
	// OptionalStructs takes structs that may be left out.
	OptionalStructs(ctx context.Context, in OptionalStructs) (OptionalStructs, error)
	// Embedded takes the fields of an embedded struct.
	Embedded(ctx context.Context, in Embedded) (Embedded, error)
	// Twice takes one struct in two places.
	Twice(ctx context.Context, in Twice) (Twice, error)
	// TagEnum takes strings whose values are in tags.
	TagEnum(ctx context.Context, in TagEnum) (TagEnum, error)
	// TypeEnum takes strings whose values are constants.
	TypeEnum(ctx context.Context, in TypeEnum) (TypeEnum, error)
	// NamedEnum takes integers whose values are the names of constants.
	NamedEnum(ctx context.Context, in NamedEnum) (NamedEnum, error)
	// EnumList takes a list of enums.
	EnumList(ctx context.Context, in EnumList) (EnumList, error)
	// Times takes times.
	Times(ctx context.Context, in Times) (Times, error)
	// Durations takes durations.
	Durations(ctx context.Context, in Durations) (Durations, error)
	// Raw takes any JSON as bytes.
	Raw(ctx context.Context, in Raw) (Raw, error)
	// Anything takes a value of any type.
	Anything(ctx context.Context, in Anything) (Anything, error)
	// File takes bytes.
	File(ctx context.Context, in File) (File, error)
	// Pages takes numbers of pages with bounds and defaults.
	Pages(ctx context.Context, in Pages) (Pages, error)
	// Cursors takes a cursor, and returns a page of a list.
	Cursors(ctx context.Context, in Cursors) (Page[Edit], error)
	// Patterns takes strings with patterns and lengths.
	Patterns(ctx context.Context, in Patterns) (Patterns, error)
	// Formats takes strings with formats.
	Formats(ctx context.Context, in Formats) (Formats, error)
	// Bounds takes numbers and lists with bounds.
	Bounds(ctx context.Context, in Bounds) (Bounds, error)
	// RequiredByTag takes fields that omitempty makes optional and a tag makes required.
	RequiredByTag(ctx context.Context, in RequiredByTag) (Switches, error)
	// Arrays takes arrays and lists of lists.
	Arrays(ctx context.Context, in Arrays) (Arrays, error)
	// Paged takes a generic struct.
	Paged(ctx context.Context, in Page[string]) (Page[string], error)
	// Nothing takes no arguments.
	Nothing(ctx context.Context) (Switches, error)
	// Tree takes a struct that contains itself.
	Tree(ctx context.Context, in Node) (Node, error)
}

// RequiredStrings has strings that must be there.
type RequiredStrings struct {
	Owner string `json:"owner" jsonschema:"the owner of the repository"`
	Repo  string `json:"repo" jsonschema:"required,description=The name of the repository"`
	Query string `json:"query"` // what to search for
}

// OptionalStrings has strings that may be left out.
type OptionalStrings struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"the namespace, or all of them"`
	Filter    string `json:"filter,omitempty"`
	Branch    string `json:"branch,omitempty" jsonschema:"default=main"`
}

// Integers has whole numbers of several sizes.
type Integers struct {
	Number int    `json:"number"`
	ID     int64  `json:"id"`
	Port   uint16 `json:"port"`
	Limit  int    `json:"limit,omitempty"`
	Offset int64  `json:"offset,omitempty"`
}

// Floats has numbers with fractions.
type Floats struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Threshold float32 `json:"threshold,omitempty"`
}

// Switches has booleans.
type Switches struct {
	Confirm bool `json:"confirm"`
	DryRun  bool `json:"dry_run,omitempty"`
}

// RequiredList has a list of strings that must be there.
type RequiredList struct {
	Names []string `json:"names" jsonschema:"the names to open"`
}

// OptionalList has a list of strings that may be left out.
type OptionalList struct {
	Tags []string `json:"tags,omitempty"`
}

// NumberList has lists of whole numbers.
type NumberList struct {
	IDs   []int64 `json:"ids"`
	Ports []int   `json:"ports,omitempty"`
}

// Edit is a change of a text.
type Edit struct {
	OldText string `json:"old_text"`
	NewText string `json:"new_text"`
	Line    int    `json:"line,omitempty"`
}

// Edits has a list of structs.
type Edits struct {
	Path  string `json:"path"`
	Edits []Edit `json:"edits"`
}

// Pointers has a list of pointers to structs.
type Pointers struct {
	Edits []*Edit `json:"edits,omitempty"`
}

// Labels has maps of strings.
type Labels struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Lists has a map of lists and one of structs.
type Lists struct {
	Matchers map[string][]string `json:"matchers"`
	Edits    map[string]Edit     `json:"edits,omitempty"`
}

// Resource has maps of any values.
type Resource struct {
	Kind      string           `json:"kind"`
	Manifest  map[string]any   `json:"manifest"`
	Options   map[string]any   `json:"options,omitempty"`
	Documents []map[string]any `json:"documents,omitempty"`
}

// Codes has maps with keys that are not strings.
type Codes struct {
	Codes  map[int]string   `json:"codes,omitempty"`
	Levels map[Level]string `json:"levels,omitempty"`
}

// OptionalPointers has pointers that may be left out.
type OptionalPointers struct {
	Title   *string `json:"title,omitempty"`
	Limit   *int    `json:"limit,omitempty"`
	Version *int64  `json:"version,omitempty"`
	Draft   *bool   `json:"draft,omitempty"`
}

// PlainPointers has pointers whose tags do not say omitempty.
type PlainPointers struct {
	Title *string  `json:"title"`
	Limit *int     `json:"limit"`
	Draft *bool    `json:"draft"`
	Ratio *float64 `json:"ratio"`
	Edit  *Edit    `json:"edit"`
}

// RequiredPointers has pointers that must be there.
type RequiredPointers struct {
	Title *string `json:"title,omitempty" jsonschema:"required"`
	Draft *bool   `json:"draft,omitempty" jsonschema:"required"`
}

// Nested has structs in structs.
type Nested struct {
	Name   string `json:"name"`
	Target struct {
		Host string `json:"host"`
		Auth struct {
			User   string   `json:"user"`
			Scopes []string `json:"scopes"`
		} `json:"auth"`
	} `json:"target"`
}

// OptionalStructs has structs that may be left out.
type OptionalStructs struct {
	First  *Edit `json:"first,omitempty"`
	Second Edit  `json:"second,omitzero"`
}

// Paging is embedded.
type Paging struct {
	Page    int `json:"page,omitempty" jsonschema:"minimum=1"`
	PerPage int `json:"per_page,omitempty" jsonschema:"minimum=1,maximum=100"`
}

// Embedded has the fields of Paging.
type Embedded struct {
	Paging

	Query string `json:"query"`
}

// Person is a name with an address.
type Person struct {
	Name  string   `json:"name"`
	Email string   `json:"email,omitempty" jsonschema:"format=email"`
	Roles []string `json:"roles"`
}

// Twice has Person in two places.
type Twice struct {
	Author    Person   `json:"author"`
	Committer Person   `json:"committer"`
	Reviewers []Person `json:"reviewers,omitempty"`
}

// TagEnum has strings whose values are in tags.
type TagEnum struct {
	State string `json:"state" jsonschema:"enum=open,enum=closed,enum=all"`
	Sort  string `json:"sort,omitempty" jsonschema:"enum=created,enum=updated,default=created"`
}

// Level is how serious a finding is.
type Level string

// The levels.
const (
	Info    Level = "info"
	Warning Level = "warning"
	Error   Level = "error"
)

// TypeEnum has strings whose values are constants.
type TypeEnum struct {
	Level   Level `json:"level"`
	Minimum Level `json:"minimum,omitempty" jsonschema:"default=info"`
}

// Priority is how soon something has to be done.
//
//mcptask:enum strings
type Priority int

// The priorities.
const (
	PriorityLow Priority = iota
	PriorityNormal
	PriorityHigh
)

// NamedEnum has integers whose values are the names of constants.
type NamedEnum struct {
	Priority Priority  `json:"priority"`
	Lowest   *Priority `json:"lowest,omitempty"`
}

// EnumList has a list of enums.
type EnumList struct {
	Levels []Level `json:"levels" jsonschema:"minItems=1,uniqueItems=true"`
}

// Times has times.
type Times struct {
	From  time.Time  `json:"from"`
	To    time.Time  `json:"to,omitzero"`
	Until *time.Time `json:"until,omitempty"`
}

// Durations has durations.
type Durations struct {
	Timeout time.Duration `json:"timeout"`
	Step    time.Duration `json:"step,omitempty"`
}

// Raw has any JSON as bytes.
type Raw struct {
	Dashboard json.RawMessage `json:"dashboard"`
	Variables json.RawMessage `json:"variables,omitempty"`
}

// Anything has values of any type.
type Anything struct {
	Value  any   `json:"value"`
	Values []any `json:"values,omitempty"`
}

// File has bytes.
type File struct {
	Name    string `json:"name"`
	Content []byte `json:"content"`
}

// Pages has numbers of pages with bounds and defaults.
type Pages struct {
	Page    int `json:"page,omitempty" jsonschema:"minimum=1,default=1"`
	PerPage int `json:"per_page,omitempty" jsonschema:"minimum=1,maximum=100,default=30"`
}

// Cursors has a cursor.
type Cursors struct {
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty" jsonschema:"maximum=1000"`
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// Patterns has strings with patterns and lengths.
type Patterns struct {
	SHA  string `json:"sha" jsonschema:"pattern=^[0-9a-f]{40}$"`
	Name string `json:"name" jsonschema:"minLength=1,maxLength=63"`
}

// Formats has strings with formats.
type Formats struct {
	URL   string `json:"url" jsonschema:"format=uri"`
	Email string `json:"email,omitempty" jsonschema:"format=email"`
	Day   string `json:"day,omitempty" jsonschema:"format=date"`
	ID    string `json:"id,omitempty" jsonschema:"format=uuid"`
}

// Bounds has numbers and lists with bounds.
type Bounds struct {
	Replicas int      `json:"replicas" jsonschema:"minimum=0,maximum=50"`
	Ratio    float64  `json:"ratio" jsonschema:"exclusiveMinimum=0,maximum=1"`
	Step     int      `json:"step,omitempty" jsonschema:"multipleOf=5"`
	Hosts    []string `json:"hosts" jsonschema:"minItems=1,maxItems=10"`
}

// RequiredByTag has fields that omitempty makes optional and a tag makes required.
type RequiredByTag struct {
	Name   string            `json:"name,omitempty" jsonschema:"required"`
	Tags   []string          `json:"tags,omitempty" jsonschema:"required"`
	Labels map[string]string `json:"labels,omitempty" jsonschema:"required"`
}

// Arrays has arrays and lists of lists.
type Arrays struct {
	Position [2]float64 `json:"position"`
	Rows     [][]string `json:"rows"`
}

// Node contains itself.
type Node struct {
	Name     string `json:"name"`
	Children []Node `json:"children,omitempty"`
}
