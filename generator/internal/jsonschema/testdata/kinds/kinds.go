// Package kinds has the types that the bridge is compared with real reflection on. They have no
// comments, because reflection sees none.
package kinds

import (
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"time"
)

type Scalars struct {
	Bool    bool
	Int     int `json:"int"`
	Int8    int8
	Uint64  uint64  `json:"uint64,omitempty"`
	Float32 float32 `json:",omitzero"`
	String  string  `json:"string"`
	Quoted  int     `json:"quoted,string"`
	Dash    string  `json:"-,"`
	Hidden  string  `json:"-"`
	Odd     string  `json:"odd name,omitempty"`
	private string
}

type Tags struct {
	Text    string   `json:"text" jsonschema:"minLength=1,maxLength=9,pattern=^[a-z]{1\\,3}$,title=A title,default=x"`
	Choice  string   `json:"choice" jsonschema:"enum=a,enum=b,example=a"`
	Number  float64  `json:"number" jsonschema:"minimum=0.5,exclusiveMaximum=10,multipleOf=0.5,default=1"`
	Integer int      `json:"integer,omitempty" jsonschema:"required,enum=1,enum=2"`
	Flag    bool     `json:"flag" jsonschema:"default=true,description=a flag"`
	List    []string `json:"list" jsonschema:"minItems=1,maxItems=3,uniqueItems=true,enum=a,enum=b"`
	Extra   string   `json:"extra" jsonschema_extras:"x-a=b" jsonschema_description:"extra, of course"`
	Left    string   `json:"left" jsonschema:"-"`
	Either  any      `json:"either" jsonschema:"oneof_type=string;integer"`
	Dated   string   `json:"dated" jsonschema:"format=date,readOnly=true"`
}

type Collections struct {
	Slice   []int
	Nested  [][]string
	Array   [2]bool
	Bytes   []byte
	Map     map[string]float64
	MapAny  map[string]any
	Structs []Inner
	Named   Names
	Deep    map[string][]Inner
	Pointer *string
	Ptrs    []*Inner
}

type Names []string

type Inner struct {
	A int
	B *Inner2 `json:"b,omitempty"`
}

type Inner2 struct{ C string }

type Known struct {
	Time    time.Time
	Pointer *time.Time `json:"pointer,omitempty"`
	Took    time.Duration
	Any     any
	Raw     json.RawMessage
}

type Base struct {
	ID string `json:"id"`
}

type Embedding struct {
	Base
	Inner `json:"inner"`

	Own string
}

type Page[T any] struct {
	Items []T
	Next  string `json:"next,omitempty"`
}

type Generic struct {
	Numbers Page[int]
	Inner   Page[*Inner]
	Alias   Alias
}

type Alias = Page[string]

type Anonymous struct {
	Deep struct {
		A int `json:"a"`
		B []struct{ C bool }
	}
}

type Corrected struct {
	IP      net.IP
	URL     url.URL
	Addr    netip.Addr
	Numbers map[int]string
	Small   map[uint8]string
	Addrs   map[netip.Addr]int
	Defs    []int `json:"defs,omitempty" jsonschema:"default=1"`
	Shadow
	*Lazy
}

type Shadow struct {
	Numbers string
	Deep    string
}

type Lazy struct{ Late string }
