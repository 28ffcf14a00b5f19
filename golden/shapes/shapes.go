// Package shapes has a tool of every signature, with names that generated code needs too.
package shapes

import (
	"context"
	"encoding/json"

	mt "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// These are named like what a generated file imports and like its variables.
type (
	mcptask struct {
		Name string `json:"name"`
	}
	ctx struct {
		Depth int `json:"depth"`
	}
	opts = struct {
		Verbose bool `json:"verbose"`
	}
)

var time, task, impl = 0, 1, 2

// Shapes has the signatures.
//
//mcptask:service prefix=shapes. wait=30s fallback=none
//mcptask:service openworld=false
type Shapes interface {
	base

	Nothing(context.Context) error
	// NoInput takes no input.
	NoInput(ctx context.Context, task *mt.Task) (Report, error)
	// NoOutput has no output.
	NoOutput(ctx context.Context, in Input) error
	// TaskAlone takes a task alone.
	//
	//mcptask:tool immediate="I am on it.\nAsk me later: \"soon\"."
	TaskAlone(ctx context.Context, task *mt.Task) error
	// Text has text as its output.
	Text(ctx context.Context, time Input) (string, error)
	// Content has content of its own.
	Content(ctx context.Context, task *mt.Task, mcptask Input) (*mt.Result, error)
	// Pointers has pointers to structs.
	Pointers(ctx context.Context, in *Input) (*Report, error)
	// Alias has aliases of structs.
	Alias(ctx context.Context, in InputAlias) (ReportAlias, error)
	// Anonymous has structs without a name.
	Anonymous(ctx context.Context, in struct {
		// Name is in an anonymous struct.
		Name string `json:"name,omitempty" jsonschema:"minLength=2"`
		Deep struct{ A, B int }
	}) (struct {
		OK bool `json:"ok"`
	}, error)
	// Empty has empty structs.
	Empty(ctx context.Context, in struct{}) (struct{}, error)
	// Shadowed has types with the names of a package and of a parameter.
	Shadowed(ctx context.Context, in mcptask) (ctx, error)
	// Options has a name and hints.
	//
	//mcptask:tool name=options readonly idempotent=true destructive=false
	Options(ctx context.Context, in opts) (mcptask, error)
	// ByHand has a schema that is written by hand.
	//
	//mcptask:tool schema=schema.json
	ByHand(ctx context.Context, in Custom) (Report, error)
	// Policies has a whole policy.
	//
	//mcptask:tool task=required ttl=90m poll=1500ms grace=1s wait=2m30s deadline=1h concurrency=4 onlost=fail
	Policies(ctx context.Context, in Input) (Report, error)

	// AVeryLongNameThatDoesNotFitOnOneLineWithItsParametersAndResults has a description that goes on and on, because whoever wrote it had much to say about what the tool does and never thought of whoever has to read it: neither the model nor the person who reviews `the generated file`. It has "quotes", a \ backslash and ümläüte.
	//
	// It has a second paragraph too, and a list:
	//   - one thing
	//   - another thing with `backticks`
	//
	// And code:
	//
	//	x := `raw`
	AVeryLongNameThatDoesNotFitOnOneLineWithItsParametersAndResults(ctx context.Context, task *mt.Task, aVeryLongNameForAParameter AVeryLongNameForAnInputThatDoesNotFitOnALine) (AVeryLongNameForAnInputThatDoesNotFitOnALine, error)

	// HTTPServerURL is http_server_url.
	HTTPServerURL(context.Context) error
	// ListURLs is list_urls.
	ListURLs(context.Context) error
	// LongestName has the longest name.
	//
	//mcptask:tool name=a23456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_1
	LongestName(context.Context, *mt.Task) error
}

// base is embedded, so its methods are tools too.
type base interface {
	// FromBase comes first.
	FromBase(context.Context) error
}

// Input is an ordinary input.
type Input struct {
	Name string `json:"name"`
}

// Report is an ordinary output.
type Report struct {
	Done bool `json:"done"`
}

type (
	// InputAlias is an alias.
	InputAlias = Input
	// ReportAlias is an alias to a pointer.
	ReportAlias = *Report
)

// Custom has JSON that only it knows.
type Custom struct{ value int }

// UnmarshalJSON reads a number in an object.
func (c *Custom) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &struct {
		Value *int `json:"value"`
	}{&c.value})
}

// MarshalJSON writes the same.
func (c Custom) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int{"value": c.value})
}

// AVeryLongNameForAnInputThatDoesNotFitOnALine has a long name.
type AVeryLongNameForAnInputThatDoesNotFitOnALine struct {
	// Field has a comment that goes on for longer than anybody likes to read on one line, with `code` in it, and stays on one line of the schema all the same, because the lines of a schema follow from its structure and nobody counts their columns.
	Field string `json:"field"`
}

//mcptask:input
type silent struct {
	Ok bool `json:"ok"`
}

var (
	_ = time + task + impl
	_ = askSilent
	_ = answerSilent
)
