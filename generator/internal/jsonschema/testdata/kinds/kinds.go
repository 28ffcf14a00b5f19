// Package kinds has the types that the bridge is compared with real reflection on. They have no
// comments, because reflection sees none.
package kinds

import (
	"encoding/json"
	"net"
	"net/netip"
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
	Integer int      `json:"integer,omitempty" jsonschema:"enum=1,enum=2"`
	Flag    bool     `json:"flag" jsonschema:"default=true,description=a flag"`
	List    []string `json:"list" jsonschema:"minItems=1,maxItems=3,uniqueItems=true,enum=a,enum=b"`
	Extra   string   `json:"extra" jsonschema_description:"extra, of course"`
	Either  any      `json:"either"`
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
	Octets  [2]byte
	Loose   []*uint8
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

type Mode string

const (
	ModeFast   Mode = "fast"
	ModeSlow   Mode = "slow"
	ModeNone   Mode = ""
	ModeQuick       = ModeFast
	modeSecret Mode = "secret"
)

type level int

const (
	low level = iota - 1
	middle
	high
)

type Bits uint8

const (
	BitA Bits = 1 << iota
	BitB
	BitC
	BitsAll = BitA | BitB | BitC
)

type Ranks uint8

const (
	RankA Ranks = iota + 1
	RankB
	RankC
	RankD
)

type Enums struct {
	Mode    Mode       `json:"mode" jsonschema:"default=slow"`
	Level   level      `json:"level"`
	Left    *Mode      `json:"left,omitempty"`
	Zero    Mode       `json:"zero,omitzero"`
	Pointer *level     `json:"pointer"`
	Modes   []Mode     `json:"modes" jsonschema:"minItems=0"`
	Pair    [2]Mode    `json:"pair"`
	Nested  [][]Mode   `json:"nested"`
	Tagged  Mode       `json:"tagged,omitempty" jsonschema:"enum=slow"`
	Typed   Mode       `json:"typed" jsonschema:"type=string"`
	Bits    Bits       `json:"bits"`
	Rank    Ranks      `json:"rank,omitempty"`
	Bytes   []Ranks    `json:"bytes"`
	Month   time.Month `json:"month"`
	Alias   ModeAlias  `json:"alias"`
	Plain   Renamed    `json:"plain"`
}

type ModeAlias = Mode

type Renamed Mode

type EnumsByTag struct {
	Mode    string     `json:"mode" jsonschema:"enum=fast,enum=slow,enum=,default=slow"`
	Level   int        `json:"level" jsonschema:"enum=-1,enum=0,enum=1"`
	Left    *string    `json:"left,omitempty" jsonschema:"enum=fast,enum=slow,enum="`
	Zero    string     `json:"zero,omitzero" jsonschema:"enum=fast,enum=slow,enum="`
	Pointer *int       `json:"pointer" jsonschema:"enum=-1,enum=0,enum=1"`
	Modes   []string   `json:"modes" jsonschema:"minItems=0,enum=fast,enum=slow,enum="`
	Pair    [2]string  `json:"pair"`
	Nested  [][]string `json:"nested"`
	Tagged  string     `json:"tagged,omitempty" jsonschema:"enum=slow"`
	Typed   string     `json:"typed"`
	Bits    int        `json:"bits"`
	Rank    int        `json:"rank,omitempty" jsonschema:"enum=1,enum=2,enum=3,enum=4"`
	Bytes   []byte     `json:"bytes"`
	Month   int        `json:"month"`
	Alias   string     `json:"alias" jsonschema:"enum=fast,enum=slow,enum="`
	Plain   string     `json:"plain"`
}

type EnumMaps struct {
	Values map[string]Mode    `json:"values"`
	Keys   map[Mode]int       `json:"keys"`
	Levels map[level][]level  `json:"levels"`
	Deep   map[string][]*Mode `json:"deep,omitempty"`
	Quoted level              `json:"quoted,string"`
	Text   Mode               `json:"text,string"`
	Lost   *level             `json:"lost,string"`
	Page   Page[Mode]         `json:"page"`
}

var _ = []any{modeSecret, low, middle, high}
