package kinds

import (
	"encoding/json"
	"fmt"
	"time"
)

// Declared has types that say themselves what their schema is, and fields that say it for them.
type Declared struct {
	Decs     []Dec            `json:"decs" jsonschema:"type=string,pattern=^[0-9]+$,minItems=1"`
	ByName   map[string]*Dec  `json:"by_name,omitempty" jsonschema:"type=string"`
	Deep     [][]Dec          `json:"deep,omitempty" jsonschema:"type=string,maxLength=9"`
	Money    Money            `json:"money"`
	Price    *Money           `json:"price" jsonschema:"description=what it costs"`
	Amounts  map[string]Money `json:"amounts"`
	Point    Point            `json:"point"`
	Points   []Point          `json:"points,omitempty"`
	Listed   Listed           `json:"listed,omitempty"`
	Time     MyTime           `json:"time"`
	Port     Port             `json:"port"`
	Level    Level            `json:"level"`
	Colour   Colour           `json:"colour"`
	Rights   Rights           `json:"rights"`
	Single   Single           `json:"single"`
	Untagged Port             `json:"untagged,omitempty" jsonschema:"enum=80,enum=443"`
}

// Dec is a decimal number that writes itself.
type Dec struct{ digits string }

// NewDec makes a Dec.
func NewDec(digits string) Dec { return Dec{digits} }

func (d Dec) MarshalJSON() ([]byte, error) { return json.Marshal(d.digits) }

func (d *Dec) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &d.digits) }

// Money is an amount with its currency.
//
//mcptask:schema type=string pattern="^[0-9]+ [A-Z]{3}$" example="5 EUR"
type Money struct {
	amount   int
	currency string
}

// NewMoney makes an amount.
func NewMoney(amount int, currency string) Money { return Money{amount, currency} }

func (m Money) MarshalJSON() ([]byte, error) {
	return json.Marshal(fmt.Sprint(m.amount, " ", m.currency))
}

func (m *Money) UnmarshalJSON(text []byte) error {
	_, err := fmt.Sscanf(string(text), `"%d %3s"`, &m.amount, &m.currency)
	return err
}

// Point is a place on a map.
//
//mcptask:schema as=pointJSON
type Point struct{ x, y int }

type pointJSON struct {
	X int `json:"x"`
	Y int `json:"y,omitempty"`
}

func (p Point) MarshalJSON() ([]byte, error) { return json.Marshal(pointJSON{p.x, p.y}) }

func (p *Point) UnmarshalJSON(text []byte) error {
	var plain pointJSON
	err := json.Unmarshal(text, &plain)
	p.x, p.y = plain.X, plain.Y
	return err
}

// Listed has the schema of an instance of a generic type.
//
//mcptask:schema as=listedJSON
type Listed struct{ items []int }

type listedJSON = SetOf[string]

// MyTime is a time.
type MyTime struct{ time.Time }

// Port is a port.
//
//mcptask:open
type Port uint16

// The known ports.
const (
	HTTP  Port = 80
	HTTPS Port = 443
)

// Level is how loud it is.
//
//mcptask:enum
type Level int

// The levels are powers of two, as flags are.
const (
	Quiet  Level = 1
	Normal Level = 2
	Loud   Level = 4
)

// Colour is a colour.
type Colour int

// The colours.
const (
	Red Colour = iota
	Green
)

// Rights are flags.
type Rights uint8

// The rights.
const (
	Read Rights = 1 << iota
	Write
	Execute
)

// Single is a text with a default.
type Single string

// Default is the default.
const Default Single = "x"
