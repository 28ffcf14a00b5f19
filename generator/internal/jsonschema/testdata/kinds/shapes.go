package kinds

import (
	"encoding/json"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema/testdata/kinds/other"
)

// Scalars.

type Bools struct {
	A bool
	B bool  `json:"b,omitempty"`
	C *bool `json:"c"`
	D *bool `json:"d,omitempty"`
	E bool  `json:"e,string"`
}

type Signed struct {
	A int
	B int8
	C int16
	D int32
	E int64
	F rune
}

type Unsigned struct {
	A uint
	B uint8
	C uint16
	D uint32
	E uint64
	F byte
}

type Floats struct {
	A float32
	B float64
	C *float64 `json:"c,omitempty"`
}

type Strings struct {
	A string
	B Word
	C *Word `json:"c"`
	D Words
}

type Word string

type Words []Word

type Quoted struct {
	A int     `json:"a,string"`
	B float64 `json:"b,string"`
	C bool    `json:"c,string"`
	D string  `json:"d,string"`
	E uint8   `json:"e,omitempty,string"`
}

// Options of the json tag.

type Omits struct {
	A string         `json:"a,omitempty"`
	B int            `json:"b,omitzero"`
	C []int          `json:"c,omitempty"`
	D map[string]int `json:"d,omitzero"`
	E *Inner2        `json:"e,omitempty"`
	F Inner2         `json:"f,omitzero"`
	G time.Time      `json:"g,omitzero"`
	H any            `json:"h,omitempty"`
	I [2]int         `json:"i,omitempty"`
}

type Named struct {
	A string `json:"with space"`
	B string `json:"with-dash.and/slash"`
	C string `json:"ümlaut"`
	D string `json:",omitempty"`
	E string `json:""`
	F string `json:"with$dollar"`
	G string `json:"UPPER"`
	H string `json:"-"`
	I string `yaml:"i"`
}

type Unexported struct {
	a int
	B int `json:"b"`
	c []func()
	d chan int
}

type Empty struct{}

type OnlyHidden struct {
	a int
	B func() `json:"-"`
}

// Collections.

type Slices struct {
	A []string
	B []*string
	C [][]int
	D [][][]bool
	E []map[string]int
	F []Inner
	G []*Inner
	H []any
	I *[]int
	J []time.Time
}

type Arrays struct {
	A [0]int
	B [3]string
	C [2][2]int
	D [1]*Inner
	E *[2]bool
	F [2][]int
	G [4]byte
}

type Maps struct {
	A map[string]int
	B map[string]*int
	C map[string][]string
	D map[string]map[string]bool
	E map[string]Inner
	F map[string]*Inner
	G map[string]any
	H map[Word]Word
	I *map[string]int
	J map[string]struct{}
}

type IntMaps struct {
	A map[int]string
	B map[int8]*Inner
	C map[int64][]int
	D map[uint]string
	E map[uint16]any
	F map[Count]bool
}

type Count int32

type TextMaps struct {
	A map[netip.Addr]string
	B map[Code]int
	C map[Code]map[Code]Inner
	D map[netip.Prefix]*int
}

type Code struct{ text string }

func (c Code) MarshalText() ([]byte, error) { return []byte(c.text), nil }

func (c *Code) UnmarshalText(text []byte) error {
	c.text = string(text)
	return nil
}

type Bytes struct {
	A []byte
	B []uint8 `json:"b,omitempty"`
	C Blob
	D [][]byte
	E map[string][]byte
	F *[]byte
}

type Blob []byte

type Pointers struct {
	A *int
	B *string `json:"b,omitempty"`
	C **int
	D *Inner
	E ***Inner `json:"e,omitempty"`
	F *any
	G *map[string]*[]*int
	H *PointerTo
	I PointerTo
}

type PointerTo *int

// Types of the standard library.

type Times struct {
	A time.Time
	B *time.Time
	C []time.Time
	D map[string]time.Time
	E time.Duration
	F *time.Duration
	G []time.Duration
	H time.Month
	I time.Weekday
}

type Raws struct {
	A json.RawMessage
	B *json.RawMessage
	C []json.RawMessage
	D map[string]json.RawMessage
	E json.RawMessage `json:"e,omitempty"`
}

type JSONNumbers struct {
	A json.Number
	B []json.Number
	C json.Number `json:"c,string"`
	D *json.Number
}

type Anys struct {
	A any
	B []any
	C map[string]any
	D interface{}
	E *any
	F [][]any
	G map[string][]any
}

type Addrs struct {
	A netip.Addr
	B *netip.Addr
	C []netip.AddrPort
	D netip.Prefix
	E net.IP
	F []net.IP
	G map[string]netip.Addr
}

type URLs struct {
	A url.Values
}

type Bigs struct {
	A big.Int
	B *big.Int
	C []big.Int
	D big.Float
	E *big.Float
	F *big.Rat
	G map[string]*big.Int
}

type Levels struct {
	A slog.Level
	B *slog.Level
	C []slog.Level
}

type Texts struct {
	A Code
	B *Code
	C []Code
	D ByPointer
	E *ByPointer
	F []ByPointer
	G map[string]*ByPointer
}

type ByPointer struct{ text string }

func (p *ByPointer) MarshalText() ([]byte, error) { return []byte(p.text), nil }

func (p *ByPointer) UnmarshalText(text []byte) error {
	p.text = string(text)
	return nil
}

// Embedding.

type EmbedsTwo struct {
	Base
	Inner2
}

type EmbedsDeep struct {
	EmbedsTwo

	Top string
}

type EmbedsPointer struct {
	*Base

	Own string
}

type EmbedsPointerDeep struct {
	*EmbedsPointer
}

type EmbedsNamed struct {
	Base   `json:"base"`
	*Inner `json:"inner"`
}

type EmbedsAlias struct {
	BaseAlias
}

type BaseAlias = Base

type EmbedsGeneric struct {
	Page[int]
}

type EmbedsOther struct {
	other.Inner
	*other.Node

	Own Inner
}

type EmbedsHidden struct {
	other.Promotes
	lower
	Word

	Own int
}

type lower struct {
	Low string `json:"low"`
	low int
}

type EmbedsHiddenNamed struct {
	lower `json:"lower"`
}

type EmbedsScalar struct {
	Word
	Count `json:"count"`
	Words
}

type EmbedsInterface struct {
	Anything
}

type Anything interface{}

type Overrides struct {
	Base

	ID int `json:"id"`
}

type Conflicts struct {
	ConflictA
	ConflictB
}

type ConflictA struct {
	X, Y string
	Z    string `json:"z"`
}

type ConflictB struct {
	X string
	Y string `json:"Y"`
	Z string `json:"z"`
}

// Recursion.

type Tree struct {
	Value    int
	Left     *Tree `json:"left,omitempty"`
	Right    *Tree
	Children []Tree
	ByName   map[string]Tree
}

type Ring struct {
	Links []Link
}

type Link struct {
	Ring *Ring `json:"ring,omitempty"`
	Next map[string]*Link
}

type HoldsTrees struct {
	A Tree
	B *Tree
	C []Tree
	R Ring
}

type GenericTree[T any] struct {
	Value T
	Sub   []GenericTree[T]
}

type IntTree = GenericTree[int]

type TreeOfTrees struct {
	A GenericTree[string]
	B GenericTree[GenericTree[bool]]
}

type OtherNode struct {
	Mine   *Node
	Theirs *other.Node
}

type Node struct {
	Next *Node
}

type EmbedsItself struct {
	*EmbedsItself

	Value int
}

type EmbedsNameless struct {
	Nameless struct {
		*EmbedsNameless
	}
	List []int
	Map  map[string]struct{ *EmbedsNameless }
}

type EmbedsPointerToList struct {
	*Lists
}

type Lists struct {
	List    []int
	Map     map[string]int
	Pointer *int
	Left    []int `json:",omitempty"`
}

// Letters has types whose names differ in letters or signs that a reference would have to escape.
type Letters struct {
	A, B Ärger
	C, D Öl
	E, F Page[*int]
	G, H Page[[]int]
}

type Ärger struct{ Ärger *Ärger }

type Öl struct{ Liter int }

type Rose struct {
	Petals Petals
	Maze   Maze
	Ways   Ways
}

type Petals []Petals

type Maze map[string]Maze

type Ways map[string][]Ways

// Generics and aliases.

type Pair[K comparable, V any] struct {
	Key K `json:"key"`
	Val V `json:"val"`
}

type Pairs struct {
	A Pair[string, int]
	B Pair[int, *Inner]
	C *Pair[string, Pair[bool, []string]]
	D []Pair[Word, any]
	E Pair[netip.Addr, Code]
}

type PageOfInner = Page[Inner]

type PageOfPages = Page[Page[*Inner]]

type Listing[T any] = Page[[]T]

type GenericAliases struct {
	A Listing[int]
	B SetOf[string]
	C Box[Inner]
	D Twice[int]
}

type SetOf[K comparable] = map[K]bool

type Box[T any] = struct {
	V T `json:"v"`
}

type Twice[T any] = Pair[string, T]

type Constrained[N interface{ ~int | ~float64 }] struct {
	From N
	To   *N
}

type Ranges struct {
	A Constrained[int]
	B Constrained[float64]
}

type NamedInstance Page[string]

type Redefined Inner

type RedefinedTwice Redefined

type Aliases struct {
	A TextAlias
	B InnerAlias
	C PointerAlias
	D SliceAlias
}

type (
	TextAlias    = string
	InnerAlias   = Inner
	PointerAlias = *Inner
	SliceAlias   = []InnerAlias
)

// Other packages and modules.

type Others struct {
	A other.Inner
	B Inner
	C other.Page[other.Inner]
	D Page[other.Inner]
	E other.Text
	F txtar.Archive
	G *txtar.File
}

// Structs without a name.

type Nameless struct {
	A struct{}
	B *struct{ X int }
	C []struct {
		Y string `json:"y,omitempty"`
	}
	D map[string]struct{ Z *Inner }
	E struct{ Inner }
	F struct {
		G struct {
			H struct{ I int }
		}
	}
}

// Tags.

type TextTags struct {
	A string     `json:"a" jsonschema:"minLength=1,maxLength=10,pattern=^a,format=email"`
	B string     `json:"b" jsonschema:"enum=x,enum=y,default=x,example=y"`
	C []string   `json:"c" jsonschema:"minItems=1,uniqueItems=true,maxLength=3"`
	D *string    `json:"d" jsonschema:"minLength=2"`
	E Word       `json:"e" jsonschema:"title=E,description=a word"`
	F string     `json:"f,omitempty" jsonschema:"title=F"`
	G netip.Addr `json:"g" jsonschema:"title=G"`
	H Code       `json:"h" jsonschema:"maxLength=3"`
}

type RequiredTags struct {
	A string         `json:"a,omitempty" jsonschema:"required"`
	B []string       `json:"b,omitempty" jsonschema:"required,minItems=1"`
	C map[string]int `json:"c,omitzero" jsonschema:"required"`
	D int            `json:"d,omitempty" jsonschema:"required,enum=1,enum=2"`
}

type NumberTags struct {
	A int      `json:"a" jsonschema:"minimum=1,maximum=10,multipleOf=2,default=4"`
	B float64  `json:"b" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1"`
	C *int     `json:"c,omitempty" jsonschema:"minimum=-5"`
	D uint8    `json:"d" jsonschema:"enum=1,enum=2"`
	E []int    `json:"e" jsonschema:"minimum=1,maxItems=4"`
	F [2]int   `json:"f" jsonschema:"title=F"`
	G bool     `json:"g" jsonschema:"default=false"`
	H Inner2   `json:"h" jsonschema:"title=H,description=a struct"`
	I *Inner2  `json:"i" jsonschema:"title=I"`
	J []Inner2 `json:"j" jsonschema:"minItems=1"`
}

type TypeTags struct {
	A any            `json:"a" jsonschema:"type=string"`
	G string         `json:"g" jsonschema_description:"a text, with a comma"`
	H map[string]int `json:"h" jsonschema:"title=H"`
}

var _ = []any{Unexported{}.a, Unexported{}.c, Unexported{}.d, OnlyHidden{}.a, lower{}.low}
