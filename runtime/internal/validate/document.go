package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// These constants bound a value. A value beyond them is refused before anything computes with it:
// for a number of eleven bytes, such as 1e-9999999, a library may compute for seconds or return
// nil.
const (
	// MaxDepth is how many objects and arrays may be nested.
	MaxDepth = 1000
	// MaxNumber bounds the bytes of a number.
	MaxNumber = 1000
	// MinExponent is the smallest exponent of a number. It and MaxExponent bound the exponent as
	// written, and the exponent that the number has with one digit before the point. A float64
	// holds all these numbers with full precision. The smaller ones that it can hold take five
	// hundred times as long to read.
	MinExponent = -307
	// MaxExponent is the largest exponent of a number.
	MaxExponent = 308
)

// numberBytes has the bytes of JSON numbers.
const numberBytes = "+-.eE0123456789"

// kind is a kind of JSON value. Each kind is a bit, so that several make a set.
type kind uint8

const (
	kindNull kind = 1 << iota
	kindBoolean
	kindNumber
	kindText
	kindArray
	kindObject
	kindInteger // of a schema's types only
)

func (k kind) String() string {
	return map[kind]string{kindNull: "null", kindBoolean: "boolean", kindNumber: "number", kindText: "string", kindArray: "array", kindObject: "object", kindInteger: "integer"}[k]
}

// document is a JSON text with an index of its values, 16 bytes each, in the order of the text. The
// children of an object are the names and the values of its members, in turn.
type document struct {
	text  string
	nodes []node
	// repeated is a name that its object has twice, or 0.
	repeated int32
	// nulls are the nodes that are null.
	nulls []int32
}

type node struct {
	kind    kind
	escaped bool // a string with a backslash
	start   int32
	size    int32 // bytes of a scalar, without the quotes; values of an array; members of an object
	next    int32 // the node after this one and all that is in it
}

// read indexes a JSON text. It refuses a text that exceeds the bounds. Its work and memory are
// proportional to the text.
func read(ctx context.Context, data []byte) (*document, error) {
	if len(data) > math.MaxInt32/4 {
		return nil, errors.New("it is longer than 512 MiB")
	}
	if !json.Valid(data) {
		var skipped json.RawMessage
		if err := json.Unmarshal(data, &skipped); err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
	}
	d := &document{text: string(data), nodes: make([]node, 0, 4+len(data)/8)}
	if !utf8.ValidString(d.text) {
		d.text = string([]rune(d.text)) // as encoding/json reads it
	}
	var open []int32 // the objects and arrays around
	for i := 0; i < len(d.text); {
		if len(d.nodes)%pollEvery == pollEvery-1 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		n := node{start: int32(i), next: int32(len(d.nodes) + 1)}
		switch c := d.text[i]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
			continue
		case '}', ']':
			i++
			last := open[len(open)-1]
			open = open[:len(open)-1]
			d.nodes[last].next = int32(len(d.nodes))
			if c == '}' {
				d.nodes[last].size /= 2
				d.findRepeated(last)
			}
			continue
		case '{', '[':
			i++
			n.kind, n.next = kindArray, math.MaxInt32 // until it ends
			if c == '{' {
				n.kind = kindObject
			}
		case '"':
			n.kind, n.start = kindText, n.start+1
			for i++; d.text[i] != '"'; i++ {
				if d.text[i] == '\\' {
					n.escaped = true
					i++
				}
			}
			n.size = int32(i) - n.start
			i++
		case 'n':
			n.kind, n.size = kindNull, 4
			d.nulls = append(d.nulls, int32(len(d.nodes)))
			i += 4
		case 't', 'f':
			n.kind, n.size = kindBoolean, 4
			if c == 'f' {
				n.size = 5
			}
			i += int(n.size)
		default:
			n.kind = kindNumber
			for i++; i < len(d.text) && strings.IndexByte(numberBytes, d.text[i]) >= 0; i++ {
			}
			n.size = int32(i) - n.start
		}
		if len(open) > 0 {
			d.nodes[open[len(open)-1]].size++
		}
		here := int32(len(d.nodes))
		d.nodes = append(d.nodes, n)
		switch n.kind {
		case kindNumber:
			if err := boundNumber(d.text[n.start:i]); err != nil {
				return nil, withPlace(d.place(here), err)
			}
		case kindObject, kindArray:
			if open = append(open, here); len(open) > MaxDepth {
				return nil, withPlace(d.place(here), fmt.Errorf("more than %d objects and arrays within each other", MaxDepth))
			}
		}
	}
	return d, nil
}

// Bounded reports whether valid JSON is within MaxDepth, MaxNumber, MinExponent and MaxExponent. It
// is for code that passes the JSON on to other readers.
func Bounded(data json.RawMessage) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			i = endOfString(data, i)
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		case startsNumber(c):
			end := endOfNumber(data, i)
			if !isBounded(string(data[i:end])) {
				return false
			}
			i = end - 1
		}
	}
	return true
}

// MaxGrowth bounds the bytes that PlainIntegers adds to a value, beyond as many as the value has.
const MaxGrowth = 64 << 10

// PlainIntegers writes the integers of valid JSON without fraction and exponent: 1.0 becomes 1, and 1e2 becomes
// 100. All other bytes stay, and so do numbers beyond the bounds of a check and those that would make the value
// grow by more than its own size and MaxGrowth. It reports whether it has changed any.
func PlainIntegers(data json.RawMessage) (plain json.RawMessage, changed bool) {
	most, copied := 2*len(data)+MaxGrowth, 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			i = endOfString(data, i)
		case startsNumber(c):
			end := endOfNumber(data, i)
			literal := string(data[i:end])
			if strings.ContainsAny(literal, ".eE") && isBounded(literal) {
				v := parseDecimal(literal)
				if grown := len(plain) + len(v.digits) + v.exponent + len(data) - copied; v.isInteger() && grown < most {
					plain = append(plain, data[copied:i]...)
					plain = v.appendInteger(plain)
					copied = end
				}
			}
			i = end - 1
		}
	}
	if copied == 0 {
		return data, false
	}
	return append(plain, data[copied:]...), true
}

// endOfString returns the index of the quote that ends the string at i, or the length of the data.
func endOfString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// startsNumber reports whether a number of valid JSON begins with a byte.
func startsNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// endOfNumber returns the index after the number at i.
func endOfNumber(data []byte, i int) int {
	for i < len(data) && strings.IndexByte(numberBytes, data[i]) >= 0 {
		i++
	}
	return i
}

// boundNumber returns an error if computing with a number would take long.
func boundNumber(literal string) error {
	switch {
	case isBounded(literal):
		return nil
	case len(literal) > MaxNumber:
		return fmt.Errorf("the number %s has %d characters: at most %d are taken", shorten(literal), len(literal), MaxNumber)
	}
	return fmt.Errorf("the number %s is out of range: exponents from %d to %d are taken", shorten(literal), MinExponent, MaxExponent)
}

func isBounded(literal string) bool {
	if len(literal) > MaxNumber {
		return false
	}
	e := strings.IndexAny(literal, "eE")
	if e < 0 {
		return true
	}
	exponent, err := strconv.Atoi(literal[e+1:])
	if err != nil || exponent < MinExponent || exponent > MaxExponent {
		return false
	}
	v := parseDecimal(literal)
	first := v.exponent + len(v.digits) - 1
	return v.digits == "" || MinExponent <= first && first <= MaxExponent
}

// findRepeated looks for a member that an object has twice. Readers disagree which of the two
// counts, so one could be checked and the other used.
func (d *document) findRepeated(of int32) {
	const few = 8
	count := 0
	switch size := d.nodes[of].size; {
	case d.repeated > 0 || size < 2:
	case size <= few:
		var names [few]string
		for name := of + 1; name < d.nodes[of].next; name = d.nodes[name+1].next {
			names[count] = d.string(name)
			if slices.Contains(names[:count], names[count]) {
				d.repeated = name
				return
			}
			count++
		}
	default:
		names := make(map[string]struct{}, size)
		for name := of + 1; name < d.nodes[of].next; name = d.nodes[name+1].next {
			if names[d.string(name)] = struct{}{}; len(names) == count {
				d.repeated = name
				return
			}
			count = len(names)
		}
	}
}

// string returns the text of a string node.
func (d *document) string(i int32) string {
	n := d.nodes[i]
	raw := d.text[n.start : n.start+n.size]
	if !n.escaped {
		return raw
	}
	var decoded string
	_ = json.Unmarshal([]byte(d.text[n.start-1:n.start+n.size+1]), &decoded) // read has seen that it is a string
	return decoded
}

// literal returns a scalar as the text has it. For a string it returns the text between the quotes.
func (d *document) literal(i int32) string {
	n := d.nodes[i]
	return d.text[n.start : n.start+n.size]
}

// place returns the path to a value from the root, such as "steps.2.name". The name of a member has
// the path of its value.
func (d *document) place(target int32) string {
	var path []string
	for at := int32(0); at != target; {
		child := at + 1
		var step string
		if d.nodes[at].kind == kindArray {
			index := 0
			for ; d.nodes[child].next <= target; child = d.nodes[child].next {
				index++
			}
			step = strconv.Itoa(index)
		} else {
			for int(child+1) < len(d.nodes) && d.nodes[child+1].next <= target {
				child = d.nodes[child+1].next
			}
			if step = shorten(d.string(child)); child != target {
				child++
			}
		}
		path, at = append(path, step), child
	}
	const most = 12
	if len(path) > most {
		path = append(append(path[:most/2:most/2], "…"), path[len(path)-most/2:]...)
	}
	return strings.Join(path, ".")
}

// withPlace puts a place before an error.
func withPlace(place string, err error) error {
	if place == "" {
		return err
	}
	return fmt.Errorf("%s: %w", place, err)
}

// marshal writes a value that was read from JSON.
func marshal(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // it was JSON
	return strings.TrimSuffix(text.String(), "\n")
}

// shorten shortens a value for a message.
func shorten(value string) string { return text.Shorten(value, 64) }
