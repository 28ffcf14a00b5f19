// Package kinds has a tool with fields of every kind.
package kinds

import (
	"context"
	"encoding/json"
	"net/netip"
	"time"
)

//go:generate go tool mcptaskgen

// Kinds takes every kind of field and returns it.
//
//mcptask:service
type Kinds interface {
	// Same returns what it gets.
	Same(ctx context.Context, in Fields) (Fields, error)
}

// Fields has every kind of field.
type Fields struct {
	Bool     *bool             `json:"bool,omitempty" jsonschema:"default=true"`
	Int      int               `json:"int,omitempty" jsonschema:"minimum=1,maximum=10,default=3"`
	Uint8    uint8             `json:"uint8"`
	Float    float32           `json:"float" jsonschema:"exclusiveMinimum=0"`
	Quoted   int               `json:"quoted,string"`
	String   string            `json:"string,omitempty" jsonschema:"enum=a,enum=b\\,c,default=a"`
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
	Time     time.Time         `json:"time"`
	Took     time.Duration     `json:"took"`
	Waited   time.Duration     `json:"waited"` // how long nothing happened
	Tagged   Stamp             `json:"tagged"`
	Addr     netip.Addr        `json:"addr"` // an IP address with `backticks`
	URL      string            `json:"url,omitempty" jsonschema:"format=uri"`
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

// Stamp is a date, which it writes itself.
//
//mcptask:schema type=string format=date
type Stamp struct{ time.Time }

// MarshalJSON writes the date alone.
func (s Stamp) MarshalJSON() ([]byte, error) { return json.Marshal(s.Format(time.DateOnly)) }

// UnmarshalJSON reads a date alone.
func (s *Stamp) UnmarshalJSON(data []byte) (err error) {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	s.Time, err = time.Parse(time.DateOnly, text)
	return err
}

var _ = Fields{}.private
