package generator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// FuzzTypes checks tools that take and return any types. The bytes choose among types, so that
// most of the declarations are valid.
func FuzzTypes(f *testing.F) {
	for i := range uint64(40) {
		random, seed := rand.New(rand.NewPCG(i, 0)), make([]byte, 200)
		for k := range seed {
			seed[k] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	w := newWorkshop(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		c := &typeChooser{choices: choices}
		w.checkDeclaration(t, []byte(c.file()))
	})
}

// typeChooser writes a declaration by choices. When they run out, it always takes the first
// alternative.
type typeChooser struct {
	choices []byte
	b       strings.Builder
}

func (c *typeChooser) below(n int) int {
	if len(c.choices) == 0 {
		return 0
	}
	i := int(c.choices[0]) % n
	c.choices = c.choices[1:]
	return i
}

func (c *typeChooser) one(of ...string) string { return of[c.below(len(of))] }

// rarely returns the first text now and then, and otherwise the second, so that most results are valid.
func (c *typeChooser) rarely(first, second string) string {
	if c.below(64) == 63 {
		return first
	}
	return second
}

// object returns a type that a tool may take.
func (c *typeChooser) object() string {
	return c.rarely(c.expr(2, false), c.one("A", "B", "C", "*Ä", "G["+c.expr(1, false)+"]", "H[Kind]", "struct {\n"+c.fields(2, false)+"}"))
}

// named are the types that a file may declare. Those from index generic on have a type
// parameter.
var named = []string{"A", "B", "C", "Ä", "Kind", "Level", "G", "H"}

const generic = 6 // the index of the first type with a type parameter

func (c *typeChooser) file() string {
	c.b.WriteString(`package p

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/netip"
	"net/url"
	"time"
)

var (
	_ json.Number
	_ slog.Level
	_ big.Int
	_ netip.Addr
	_ url.URL
	_ time.Time
)

//mcptask:service
type S interface {
`)
	for i := range 1 + c.below(3) {
		fmt.Fprintf(&c.b, "\tRun%d(ctx context.Context, in %s) (%s, error)\n", i, c.object(), c.object())
	}
	fmt.Fprintf(&c.b, "}\n\n//mcptask:input\ntype Ask struct {\n\tA %s\n}\n", c.rarely(c.expr(1, false), c.one("string", "*Kind", "[]Kind", "Level", "bool")+c.tag()))
	for i, name := range named {
		c.declare(i, name)
	}
	return c.b.String()
}

func (c *typeChooser) declare(i int, name string) {
	params := ""
	if i >= generic {
		params = c.one("[P any]", "[P any]", "[P comparable]", "[P ~string | ~int]")
	}
	fmt.Fprintf(&c.b, "\n// %s is a type.\ntype %[1]s%s ", name, params)
	switch kind := c.below(8); {
	case strings.HasPrefix(name, "Kind") || strings.HasPrefix(name, "Level"):
		values := []string{`""`, `"a"`, `"\xff"`, `"a b"`, `"a"`}
		if c.b.WriteString(c.rarely("float64", map[string]string{"Kind": "string", "Level": "int"}[name]) + "\n\n"); name == "Level" {
			values = []string{"0", "1", "1 << 7", "-1", "4"}
		}
		for k := range c.below(4) {
			fmt.Fprintf(&c.b, "// %[1]s%[2]d is one.\nconst %[1]s%[2]d %[1]s = %[3]s\n", name, k, c.rarely("nil", c.one(values...)))
		}
	case kind == 6 && i > 0:
		c.b.WriteString(c.rarely("= "+c.expr(2, i >= generic), "= "+c.object()) + "\n")
	case kind == 7 && i > 0:
		c.b.WriteString(c.rarely(c.expr(2, i >= generic), c.object()) + "\n")
	default:
		fmt.Fprintf(&c.b, "struct {\n%s}\n", c.fields(2, i >= generic))
	}
	if c.below(64) == 63 && i < generic {
		fmt.Fprintf(&c.b, "\nfunc (%s%s) %s\n", c.one("", "*"), name, c.one(
			"MarshalText() ([]byte, error) { return nil, nil }", "UnmarshalText([]byte) error { return nil }",
			"MarshalJSON() ([]byte, error) { return nil, nil }", "UnmarshalJSON([]byte) error { return nil }", "JSONSchema() {}",
		))
	}
}

func (c *typeChooser) fields(depth int, param bool) string {
	var b strings.Builder
	for i := range c.below(5) {
		switch name := c.one("A", "B", "Name", "ID", "a", "_", "Größe", "F1", ""); name {
		case "": // embedded
			b.WriteString("\t" + c.one("", "*") + c.name(param) + c.tag() + "\n")
		default:
			name = c.rarely(name, name+strings.Repeat("x", i)) // otherwise once
			b.WriteString("\t" + c.one("", "// A comment.\n\t") + name + " " + c.expr(depth, param) + c.tag() + "\n")
		}
	}
	return b.String()
}

func (c *typeChooser) name(param bool) string {
	i := c.below(len(named))
	if i < generic {
		return named[i]
	}
	return named[i] + "[" + c.expr(1, param) + "]"
}

// expr writes a type.
func (c *typeChooser) expr(depth int, param bool) string {
	kind := c.below(18)
	if depth <= 0 && kind > 6 {
		kind %= 7
	}
	switch kind {
	case 0, 1:
		return c.name(param && depth > 0)
	case 2:
		if param {
			return "P"
		}
		return "string"
	case 3:
		return c.rarely(c.one("uintptr", "complex64", "error"), c.one("string", "bool", "int", "uint8", "int64", "float32", "byte", "rune", "any"))
	case 4:
		return c.one("time.Time", "time.Duration", "json.RawMessage", "json.Number", "big.Int", "url.URL", "netip.Addr", "slog.Level")
	case 5:
		return c.rarely(c.one("chan int", "func()", "interface{ M() }", "Missing", "context.Context"), c.one("string", "struct{}", "[]byte"))
	case 6:
		return "*" + named[c.below(generic)]
	case 7, 8:
		return "*" + c.expr(depth-1, param)
	case 9, 10, 11:
		return "[]" + c.expr(depth-1, param)
	case 12:
		return c.rarely("[1 << 40]", c.one("[0]", "[3]", "[300]")) + c.expr(depth-1, param)
	case 13, 14:
		return "map[" + c.rarely(c.one("bool", "A"), c.one("string", "int", "uint", "Kind", "Level", "netip.Addr")) + "]" + c.expr(depth-1, param)
	}
	return "struct {\n" + c.fields(depth-1, param) + "}"
}

func (c *typeChooser) tag() string {
	switch c.below(8) {
	case 0:
		return " `json:\"" + c.one("a", "", "-", "A", "größe", "a b", "x.y", "B") + c.rarely(c.one(",inline", ",", "'"), c.one("", ",omitempty", ",omitzero", ",string", ",omitempty,string")) + "\"`"
	case 1:
		right := c.one("a plain text", "required", "title=a\\\\,b", "nullable", "readOnly=true", "deprecated=true", "description=d", "-", "")
		wrong := c.one("enum=a,enum=b", "default=1", "default=x", "minimum=1,maximum=x", "type=string", "type=integer", "format=date", "pattern=([",
			"minLength=-1", "oneof_required=g", "anyof_type=string;integer", "example=1", "multipleOf=0", "uniqueItems=true,minItems=1", "oneof_ref=#/x")
		return " `jsonschema:\"" + c.one(right, right, right, wrong) + "\"`"
	}
	return ""
}
