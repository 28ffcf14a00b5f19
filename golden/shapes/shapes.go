// Package shapes has a tool of every shape, to see that what is generated for them compiles.
package shapes

import (
	"context"
	"encoding/json"
	"net/netip"
	"net/url"
	clock "time"

	other2 "github.com/mcptaskgen/mcptaskgen/golden/shapes/elsewhere/other"
	"github.com/mcptaskgen/mcptaskgen/golden/shapes/other"
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
//mcptask:service prefix=shapes. wait=30s
//mcptask:service openworld=false
type Shapes interface {
	base

	Nothing(context.Context) error
	NoInput(ctx context.Context, task *mt.Task) (Report, error)
	NoOutput(ctx context.Context, in Input) error
	// TaskAlone takes a task alone.
	//
	//mcptask:tool immediate="I am on it.\nAsk me later: \"soon\"."
	TaskAlone(ctx context.Context, task *mt.Task) error
	Text(ctx context.Context, time Input) (string, error)
	Content(ctx context.Context, task *mt.Task, mcptask Input) (*mt.Result, error)
	Pointers(ctx context.Context, in *Input) (*Report, error)
	Alias(ctx context.Context, in InputAlias) (ReportAlias, error)
	Anonymous(ctx context.Context, in struct {
		// Name is in an anonymous struct.
		Name string `json:"name,omitempty" jsonschema:"minLength=2"`
		Deep struct{ A, B int }
	}) (struct {
		OK bool `json:"ok"`
	}, error)
	Empty(ctx context.Context, in struct{}) (struct{}, error)
	Generic(ctx context.Context, in Page[Input]) (Page[Pair[string, *other.Node]], error)
	Recursive(ctx context.Context, in Tree) (List, error)
	Others(ctx context.Context, in other.Context) (Both, error)
	Shadowed(ctx context.Context, in mcptask) (ctx, error)
	Options(ctx context.Context, in opts) (mcptask, error)
	//mcptask:tool name=kinds readonly idempotent=true destructive=false
	Kinds(ctx context.Context, in Kinds) (Kinds, error)
	//mcptask:tool schema=schema.json
	ByHand(ctx context.Context, in Custom) (Report, error)
	//mcptask:tool task=required ttl=90m poll=1500ms grace=1s wait=2m30s deadline=1h onlost=fail
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
	//mcptask:tool name=a23456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_1
	LongestName(context.Context, *mt.Task) error
}

// base is embedded, so its methods are tools too.
type base interface {
	// FromBase comes first.
	FromBase(context.Context) error
}

// Second is another service in the package.
//
//mcptask:service fallback=tools prefix=second_
type Second interface {
	Run(ctx context.Context, task *mt.Task, in Input) (Report, error)
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

// Page is generic.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// Pair is generic in two ways.
type Pair[K comparable, V any] struct {
	Key   K `json:"key"`
	Value V `json:"value"`
}

// Tree holds trees.
type Tree struct {
	Name     string          `json:"name"`
	Left     *Tree           `json:"left,omitempty"`
	Right    *Tree           `json:"right"`
	Children []Tree          `json:"children"`
	Named    map[string]Tree `json:"named,omitempty"`
}

// List leads to a type that holds itself.
type List struct {
	Head *Item `json:"head"`
	Rose Rose  `json:"rose"`
}

// Item is an item of a list.
type Item struct {
	Value int   `json:"value"`
	Next  *Item `json:"next,omitempty"`
}

// Rose is a tree of nothing else.
type Rose []Rose

// Both uses two types of one name.
type Both struct {
	Here      Node          `json:"here"`
	There     other.Node    `json:"there"`
	Elsewhere other2.Node   `json:"elsewhere"`
	Again     *Node         `json:"again,omitempty"`
	Theirs    []other.Node  `json:"theirs"`
	Others    []other2.Node `json:"others"`
}

// Node is the first Node.
type Node struct {
	ID int `json:"id"`
}

// Embedded is embedded.
type Embedded struct {
	Base string `json:"base"`
	Same string `json:"same"`
}

// Kinds has every kind of field.
type Kinds struct {
	Embedded
	*other.Meta

	Same     int               `json:"same" jsonschema:"description=hides the one of Embedded"`
	Bool     bool              `json:"bool" jsonschema:"default=true"`
	Int      int               `json:"int" jsonschema:"minimum=1,maximum=10,default=3"`
	Uint8    uint8             `json:"uint8"`
	Float    float32           `json:"float" jsonschema:"exclusiveMinimum=0"`
	Quoted   int               `json:"quoted,string"`
	String   string            `json:"string" jsonschema:"enum=a,enum=b\\,c,default=a"`
	Plain    string            `json:"plain" jsonschema:"a plain description, with a comma"`
	Bytes    []byte            `json:"bytes"`
	Array    [3]int            `json:"array"`
	Nested   [][]string        `json:"nested"`
	Pointer  *string           `json:"pointer"`
	Enum     *string           `json:"enum" jsonschema:"enum=x,enum=y"`
	Left     *string           `json:"left,omitempty"`
	Map      map[string]*int   `json:"map"`
	Numbers  map[int]string    `json:"numbers"`
	Unsigned map[uint]any      `json:"unsigned,omitzero"`
	Hosts    map[netip.Addr]On `json:"hosts,omitempty"`
	Any      any               `json:"any"`
	Raw      json.RawMessage   `json:"raw"`
	Time     clock.Time        `json:"time"`
	Took     clock.Duration    `json:"took"`
	Tagged   clock.Duration    `json:"tagged" jsonschema:"type=string,format=duration"`
	Addr     netip.Addr        `json:"addr"` // an IP address with `backticks`
	URL      url.URL           `json:"url,omitzero"`
	On       On                `json:"on"`
	Defaults []int             `json:"defaults,omitempty" jsonschema:"default=1,default=2,minItems=1"`
	Nullable string            `json:"nullable" jsonschema:"nullable"`
	Skipped  chan int          `json:"-"`
	Hidden   func()            `json:"-"`
	private  int
}

// On is a text of its own.
type On bool

// MarshalText writes on or off.
func (o On) MarshalText() ([]byte, error) {
	if o {
		return []byte("on"), nil
	}
	return []byte("off"), nil
}

// UnmarshalText reads on or off.
func (o *On) UnmarshalText(text []byte) error {
	*o = string(text) == "on"
	return nil
}

// Custom has JSON that only it knows.
type Custom struct{ value int }

// UnmarshalJSON reads a number in an object.
func (c *Custom) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &struct {
		Value *int `json:"value"`
	}{&c.value})
}

// AVeryLongNameForAnInputThatDoesNotFitOnALine has a long name.
type AVeryLongNameForAnInputThatDoesNotFitOnALine struct {
	// Field has a comment that goes on for longer than a line of the generated file may be, so that the schema that holds it has to be broken in the middle of `it`, wherever that may be, and then once more because it is so very long.
	Field string `json:"field"`
}

//mcptask:input
type silent struct {
	Ok bool `json:"ok"`
}

var (
	_ = time + task + impl
	_ = Kinds{}.private
	_ = askSilent
)
