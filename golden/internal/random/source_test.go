package random

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// prelude has the types that random structs use beside their own.
const prelude = `package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"time"
)

var (
	_ json.Number
	_ big.Int
	_ netip.Addr
	_ time.Time
)

// Color is an enum of strings.
type Color string

const (
	ColorRed   Color = "red"
	ColorGreen Color = "grün"
	ColorNone  Color = ""
)

// Level is an enum of integers.
type Level int16

const (
	LevelLow  Level = -3
	LevelMid  Level = 1
	LevelHigh Level = 300
)

// Rank is an enum of integers that are names in JSON.
//
//mcptask:enum strings
type Rank uint8

const (
	RankLow Rank = iota
	RankHigh
	_
	TopRank
)

// Name is a string.
type Name string

// Code is a string by its methods.
type Code struct{ text string }

func (c Code) MarshalText() ([]byte, error) { return []byte(c.text), nil }

func (c *Code) UnmarshalText(text []byte) error {
	if !strings.HasPrefix(string(text), "c-") {
		return errors.New("a code begins with c-")
	}
	c.text = string(text)
	return nil
}

// Amount is a JSON string by its methods.
type Amount struct{ text string }

func (a Amount) MarshalJSON() ([]byte, error) { return json.Marshal(a.text + " EUR") }

func (a *Amount) UnmarshalJSON(data []byte) (err error) {
	var text string
	if err = json.Unmarshal(data, &text); err != nil {
		return err
	}
	var ok bool
	if a.text, ok = strings.CutSuffix(text, " EUR"); !ok {
		return errors.New("an amount ends with EUR")
	}
	return nil
}

// Stamp is a date by its methods.
//
//mcptask:schema type=string format=date
type Stamp struct{ time.Time }

func (s Stamp) MarshalJSON() ([]byte, error) { return json.Marshal(s.Format(time.DateOnly)) }

func (s *Stamp) UnmarshalJSON(data []byte) (err error) {
	var text string
	if err = json.Unmarshal(data, &text); err == nil {
		s.Time, err = time.Parse(time.DateOnly, text)
	}
	return err
}

// Moment is a time.
type Moment struct{ time.Time }

// Rate is an enum of one.
//
//mcptask:enum
type Rate uint8

const RateFull Rate = 100

// Mood has constants, and other values too.
//
//mcptask:open
type Mood string

const (
	MoodGood Mood = "good"
	MoodBad  Mood = "bad"
)

// Page is generic.
type Page[T any] struct {
	Items []T ` + "`json:\"items\"`" + `
	Next  *T  ` + "`json:\"next,omitempty\"`" + `
	Index map[Name]T ` + "`json:\"index\"`" + `
}

// samples has the values, as JSON, of types of which few values are valid. The first of them stands for the zero value.
var samples = map[reflect.Type][]string{
	reflect.TypeFor[Color]():  {` + "`\"\"`, `\"red\"`, `\"grün\"`" + `},
	reflect.TypeFor[Level]():  {"1", "-3", "300"},
	reflect.TypeFor[Rank]():   {` + "`\"low\"`, `\"high\"`, `\"top\"`" + `},
	reflect.TypeFor[Code]():   {` + "`\"c-\"`, `\"c-1\"`" + `},
	reflect.TypeFor[Amount](): {` + "`\"1 EUR\"`, `\" EUR\"`" + `},
	reflect.TypeFor[Stamp]():  {` + "`\"0001-01-01\"`, `\"2026-02-03\"`" + `},
	reflect.TypeFor[Moment](): {` + "`\"0001-01-01T00:00:00Z\"`, `\"2026-02-03T04:05:06Z\"`" + `},
	reflect.TypeFor[Rate]():   {"100"},
}
`

// variant is a type with a jsonschema tag, and the values, as JSON, that fit the tag. Without values, every value fits.
type variant struct{ typ, tag, samples string }

var variants = []variant{
	{"int8", "minimum=-5,maximum=7", `0 -5 7`},
	{"uint16", "minimum=10", `10 65535`},
	{"int", "multipleOf=3", `0 3 -9`},
	{"int64", "exclusiveMinimum=0,exclusiveMaximum=10", `1 9`},
	{"*uint8", "maximum=9", `null 9`},
	{"uint64", "default=7", ``},
	{"float64", "minimum=-0.5,maximum=2.5", `0 -0.5 2.5`},
	{"float32", "exclusiveMinimum=0", `0.5 1e30`},
	{"float64", "multipleOf=0.5", `0 1.5 -7`},
	{"uint8", "enum=1,enum=2", `1 2`},
	{"float64", "enum=1.5,enum=2", `1.5 2`},
	{"bool", "default=true", ``},
	{"string", "minLength=2,maxLength=4", `"ab" "äöüß" "𝄞𝄞"`},
	{"string", "pattern=^[a-z]+$", `"a" "abc"`},
	{"string", `pattern=^\d{3}-\w+$`, `"123-a" "000-_9"`},
	{"string", `pattern=^(?:x|yy)*$`, `"" "xyyx"`},
	{"string", `pattern=^\p{L}+$`, `"ü" "aß天"`},
	{"string", "format=date-time", `"2026-01-02T15:04:05Z" "2026-01-02T15:04:05.5+02:00"`},
	{"string", "format=date", `"2026-01-02" "2024-02-29"`},
	{"string", "format=time", `"15:04:05Z" "15:04:05+01:00"`},
	{"string", "format=email", `"ann@example.com"`},
	{"string", "format=uri", `"https://example.com/a?b#c" "urn:isbn:1"`},
	{"string", "format=ipv4", `"192.0.2.1"`},
	{"string", "format=ipv6", `"::1" "2001:db8::1"`},
	{"string", "format=uuid", `"123e4567-e89b-12d3-a456-426614174000"`},
	{"string", "format=hostname", `"www.example.com"`},
	{"string", "format=duration", `"PT1H30M" "P1D"`},
	{"string", "enum=red,enum=green,default=red", `"red" "green"`},
	{"*string", "enum=a,enum=b", `null "a" "b"`},
	{"string", "title=A title,description=A text,readOnly=true", ``},
	{"int", "the amount of it", ``},
	{"string", "nullable", ``},
	{"Name", "minLength=1", `"n" "ünï"`},
	{"[]string", "minItems=1,maxItems=3", `["a"] ["a","b","c"]`},
	{"[]int", "uniqueItems=true", `[] [1,2] null`},
	{"[3]int8", "uniqueItems=true", `[0,1,2]`},
	{"[]string", "enum=x,enum=y", `[] ["x"] ["y","x"] null`},
	{"[]int8", "minimum=0", `[] [0,127] null`},
	{"any", "type=integer", `1 -9007199254740993`},
	{"any", "type=string", `"" "a"`},
	{"json.RawMessage", "type=object", `{} {"a":[1]}`},
	{"Color", "type=string", `"blue" "red"`},
	{"Level", "type=integer", `7 -3`},
	{"Rank", "enum=low,enum=top,default=top", `"low" "top"`},
	{"[]Rank", "uniqueItems=true", `[] ["top","low"] null`},
	{"Amount", "type=string", `" EUR" "1 EUR"`},
	{"[]Amount", "type=string", `[] ["1 EUR"] null`},
	{"[2]Amount", "type=string", `["1 EUR","2 EUR"]`},
	{"map[string]Amount", "type=string", `{} {"a":"1 EUR"} null`},
	{"*Amount", "type=string", `null "1 EUR"`},
}

// source writes random types.
type source struct {
	*rand.Rand

	b        strings.Builder
	plain    bool     // only types and tags that admit the zero value
	embedded []string // structs to embed, whose members have names of their own
	structs  []string
	names    int
}

// newSource writes a package with a service that has a tool for each of n random structs.
func newSource(seed uint64, n int) string {
	s := &source{Rand: rand.New(rand.NewPCG(seed, 0))}
	s.b.WriteString(prelude)
	for i := range 12 {
		// Members that are promoted through a pointer may be missing. Others are then written as zero values.
		s.plain = i%2 == 0
		s.declare(fmt.Sprintf("E%d", i))
		s.embedded = append(s.embedded, fmt.Sprintf("%sE%d", map[bool]string{true: "*"}[s.plain], i))
	}
	s.plain = false
	var methods, echo, types strings.Builder
	for i := range n {
		name := fmt.Sprintf("T%d", i)
		s.declare(name)
		s.structs = append(s.structs, name)
		fmt.Fprintf(&methods, "\tRun%s(ctx context.Context, in %[1]s) (%[1]s, error)\n", name)
		fmt.Fprintf(&echo, "\nfunc (echo) Run%s(_ context.Context, in %[1]s) (%[1]s, error) { return in, nil }\n", name)
		fmt.Fprintf(&types, "\t\"run_t%d\": reflect.TypeFor[%s](),\n", i, name)
	}
	fmt.Fprintf(&s.b, "\n//mcptask:service\ntype Random interface {\n%s}\n\n// echo returns what it gets.\ntype echo struct{}\n%s\nvar types = map[string]reflect.Type{\n%s}\n",
		methods.String(), echo.String(), types.String())
	return s.b.String()
}

func (s *source) declare(name string) {
	fields := s.fields(2, name, !strings.HasPrefix(name, "E"))
	fmt.Fprintf(&s.b, "\n// %s is random.\ntype %[1]s struct {\n%s}\n", name, fields)
}

func (s *source) one(of ...string) string { return of[s.IntN(len(of))] }

// fields writes the fields of a struct.
func (s *source) fields(depth int, self string, embeds bool) string {
	var b strings.Builder
	if embeds && s.IntN(3) == 0 {
		fmt.Fprintf(&b, "\t%s%s\n", s.one(s.embedded...), s.one("", "", " `json:\"embedded\"`"))
	}
	if embeds && s.IntN(5) == 0 {
		fmt.Fprintf(&b, "\tAgain %s%s `json:\"again,omitempty\"`\n", s.one("*", "[]", "map[string]", "[]*"), self)
	}
	for range 1 + s.IntN(6) {
		s.names++
		name := fmt.Sprintf("%s%d", s.one("f", "Field", "größe", "a.b", "a b", "x-"), s.names)
		if s.IntN(3) == 0 && !s.plain {
			v := variants[s.IntN(len(variants))]
			s.field(&b, name+s.one("", ",omitempty", ",omitzero"), v.typ, v.tag, v.samples)
			continue
		}
		if typ := s.one("string", "bool", "int", "int8", "uint64", "float64", "*int64", "*bool"); s.IntN(6) == 0 {
			s.field(&b, name+",string"+s.one("", ",omitempty"), typ, "", "")
			continue
		}
		s.field(&b, name+s.one("", "", ",omitempty", ",omitzero"), s.typ(depth), "", "")
	}
	return b.String()
}

// field writes a field. Its tag sample has the values that the program takes.
func (s *source) field(b *strings.Builder, name, typ, tag, samples string) {
	text := fmt.Sprintf("json:%q", name)
	if tag != "" {
		text += " jsonschema:" + strconv.Quote(tag)
	}
	if samples != "" {
		list, err := json.Marshal(rawList(samples))
		if err != nil {
			panic(err)
		}
		text += " sample:" + strconv.Quote(string(list))
	}
	fmt.Fprintf(b, "\tF%d %s `%s`\n", s.names, typ, text)
}

// rawList splits values at the spaces between them.
func rawList(values string) []json.RawMessage {
	var list []json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(values))
	for decoder.More() {
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			panic(err)
		}
		list = append(list, value)
	}
	return list
}

// typ writes a type.
func (s *source) typ(depth int) string {
	kind := s.IntN(16)
	if depth <= 0 {
		kind %= 8
	}
	if kind == 6 && s.plain {
		kind = 3
	}
	switch kind {
	case 0, 1, 2:
		return s.one("bool", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
	case 3:
		return s.one("string", "string", "[]byte", "Name")
	case 4, 5:
		return s.one("time.Time", "time.Duration", "json.RawMessage", "json.Number", "*big.Int", "netip.Addr", "any")
	case 6:
		return s.one("Color", "Level", "Rank", "Code", "*Color", "*Rank", "*Code", "Stamp", "Moment", "*Stamp", "Rate", "Mood")
	case 7:
		if len(s.structs) > 0 {
			return s.one("", "*") + s.one(s.structs...)
		}
		return s.one(s.one("struct{}", "*string"))
	case 8, 9:
		return "*" + s.typ(depth-1)
	case 10, 11:
		return "[]" + s.typ(depth-1)
	case 12:
		return s.one("[0]", "[1]", "[3]") + s.typ(depth-1)
	case 13:
		return "map[" + s.one("string", "int", "int8", "uint16", "uint64", "Name", "Color", "Level", "Rank", "Code", "Mood") + "]" + s.typ(depth-1)
	case 14:
		return "Page[" + s.typ(0) + "]"
	}
	return "struct {\n" + s.fields(depth-1, "", false) + "}"
}
