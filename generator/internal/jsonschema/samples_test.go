package jsonschema_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"log/slog"
	"math"
	"math/big"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema/testdata/kinds"
)

// member is a field as encoding/json encodes it. Reflection finds it. That is a second reading of the rules, beside the
// one under test.
type member struct {
	field  reflect.StructField
	omits  bool // omitted if empty, or promoted through a pointer
	empty  bool // omitted if empty
	quoted bool
}

// membersOf lists the members of a struct by their name in JSON.
func membersOf(rt reflect.Type) map[string]member {
	type found struct {
		member
		tagged bool
	}
	all := map[string][]found{}
	var visit func(st reflect.Type, depth int, index []int, pointer bool, open map[reflect.Type]bool)
	visit = func(st reflect.Type, depth int, index []int, pointer bool, open map[reflect.Type]bool) {
		if open[st] {
			return
		}
		open[st] = true
		defer delete(open, st)
		for i := range st.NumField() {
			f := st.Field(i)
			f.Index = append(append([]int{}, index...), i)
			tag := f.Tag.Get("json")
			name, options, _ := strings.Cut(tag, ",")
			if strings.Contains(name, "'") {
				name = "" // encoding/json takes no quotes
			}
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			switch embeds := f.Anonymous && inner.Kind() == reflect.Struct; {
			case tag == "-" || !f.IsExported() && !embeds:
				continue
			case embeds && name == "":
				visit(inner, depth+1, f.Index, pointer || f.Type.Kind() == reflect.Pointer, open)
				continue
			}
			m := found{member{field: f, omits: pointer}, name != ""}
			for option := range strings.SplitSeq(options, ",") {
				m.empty = m.empty || option == "omitempty" || option == "omitzero"
				m.omits = m.omits || m.empty
				m.quoted = m.quoted || option == "string"
			}
			if name == "" {
				name = f.Name
			}
			all[name] = append(all[name], m)
		}
	}
	visit(rt, 0, nil, false, map[reflect.Type]bool{})
	result := map[string]member{}
	for name, candidates := range all {
		best, ties := candidates[0], 1
		for _, c := range candidates[1:] {
			a, b := len(c.field.Index), len(best.field.Index)
			switch {
			case a < b || a == b && c.tagged && !best.tagged:
				best, ties = c, 1
			case a == b && c.tagged == best.tagged:
				ties++
			}
		}
		if ties == 1 {
			result[name] = best.member
		}
	}
	return result
}

// writesText reports whether a type is a string in JSON by its own method.
func writesText(rt reflect.Type) bool {
	text, jsoned := reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[json.Marshaler]()
	p := reflect.PointerTo(rt)
	return rt.Kind() != reflect.Interface && rt.Kind() != reflect.Pointer && p.Implements(text) && !p.Implements(jsoned) ||
		rt == reflect.TypeFor[time.Time]() || rt == reflect.TypeFor[slog.Level]()
}

// samples makes random values of types. The same seed gives the same values.
type samples struct{ *rand.Rand }

func newSamples(seed int) samples { return samples{rand.New(rand.NewPCG(uint64(seed), 1))} }

func (s samples) once(times int) bool { return s.IntN(times) == 0 }

func (s samples) text() string {
	return []string{"", "a", "Ünï", "<&>", "a\nb\"`", "\u2028", "12", "null", strings.Repeat("x", 40)}[s.IntN(9)]
}

func (s samples) addr() netip.Addr {
	return []netip.Addr{{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("fe80::1%eth0")}[s.IntN(4)]
}

// special returns values of the types that fill cannot fill field by field.
func (s samples) special(rt reflect.Type) any {
	switch rt {
	case reflect.TypeFor[time.Time]():
		return time.Unix(s.Int64N(4e9), s.Int64N(1e9)).UTC()
	case reflect.TypeFor[netip.Addr]():
		return s.addr()
	case reflect.TypeFor[netip.AddrPort]():
		return netip.AddrPortFrom(netip.MustParseAddr("::1"), uint16(s.IntN(1<<16)))
	case reflect.TypeFor[netip.Prefix]():
		return netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), s.IntN(33))
	case reflect.TypeFor[net.IP]():
		return []net.IP{nil, net.ParseIP("10.0.0.1"), net.ParseIP("::1")}[s.IntN(3)]
	case reflect.TypeFor[big.Int]():
		return *new(big.Int).Exp(big.NewInt(s.Int64N(9)-4), big.NewInt(s.Int64N(90)), nil)
	case reflect.TypeFor[big.Float]():
		return *big.NewFloat(s.NormFloat64())
	case reflect.TypeFor[big.Rat]():
		return *big.NewRat(s.Int64N(100)-50, s.Int64N(9)+1)
	case reflect.TypeFor[json.RawMessage]():
		return []json.RawMessage{nil, json.RawMessage(`null`), json.RawMessage(`{"a":[1,true,"x"]}`), json.RawMessage(`7`)}[s.IntN(4)]
	case reflect.TypeFor[json.Number]():
		return []json.Number{"0", "-1.5e3", "12345678901234567890"}[s.IntN(3)]
	case reflect.TypeFor[slog.Level]():
		return slog.Level(s.IntN(20) - 8)
	case reflect.TypeFor[kinds.Code]():
		var code kinds.Code
		_ = code.UnmarshalText([]byte(s.text()))
		return code
	case reflect.TypeFor[kinds.ByPointer]():
		var p kinds.ByPointer
		_ = p.UnmarshalText([]byte(s.text()))
		return p
	}
	return nil
}

// fill sets a value at random, down to a depth.
func (s samples) fill(v reflect.Value, depth int) {
	if value := s.special(v.Type()); value != nil {
		v.Set(reflect.ValueOf(value))
		return
	}
	end := depth <= 0 || s.once(4)
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(s.once(2))
	case reflect.String:
		v.SetString(s.text())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		limit := int64(1)<<(v.Type().Bits()-1) - 1
		v.SetInt([]int64{0, 1, -1, limit, -limit - 1}[s.IntN(5)])
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint([]uint64{0, 1, math.MaxUint64 >> (64 - v.Type().Bits())}[s.IntN(3)])
	case reflect.Float32:
		v.SetFloat(float64(float32(s.NormFloat64())))
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -0.5, 1e300, s.NormFloat64()}[s.IntN(5)])
	case reflect.Pointer:
		if !end {
			v.Set(reflect.New(v.Type().Elem()))
			s.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if !end {
			v.Set(reflect.MakeSlice(v.Type(), s.IntN(3), 3))
			for i := range v.Len() {
				s.fill(v.Index(i), depth-1)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			s.fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		if !end {
			v.Set(reflect.MakeMap(v.Type()))
			for range s.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				s.fill(key, depth-1)
				s.fill(value, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Interface:
		if value := s.anything(2); v.NumMethod() == 0 && value != nil {
			v.Set(reflect.ValueOf(value))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && v.Type().Field(i).Tag.Get("json") != "-" {
				s.fill(f, depth-1)
			} else if v.Type().Field(i).Anonymous && f.Kind() == reflect.Struct {
				s.fill(f, depth-1) // reflection cannot set it, but can set its exported fields
			}
		}
	}
}

// anything returns a random JSON value as encoding/json decodes it.
func (s samples) anything(depth int) any {
	switch s.IntN(6) {
	case 0:
		return nil
	case 1:
		return s.once(2)
	case 2:
		return float64(s.IntN(100))
	case 3:
		return s.text()
	case 4:
		if depth > 0 {
			return []any{s.anything(depth - 1)}
		}
	case 5:
		if depth > 0 {
			return map[string]any{"k": s.anything(depth - 1)}
		}
	}
	return "end"
}

// written returns a random value of a type as encoding/json encodes it.
func (s samples) written(rt reflect.Type) any {
	v := reflect.New(rt)
	s.fill(v.Elem(), 2)
	data, err := json.Marshal(v.Interface())
	if err != nil {
		panic(err)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		panic(err)
	}
	return value
}

// admitted returns a random value that a schema admits. The schema decides its shape. The Go type decides the rest,
// such as the size of an integer or the form of an address.
func (s samples) admitted(root, schema map[string]any, rt reflect.Type, quoted bool, depth int) any {
	schema = resolve(root, schema)
	for rt != nil && rt.Kind() == reflect.Pointer {
		rt = rt.Elem()
	}
	if list, ok := schema["anyOf"].([]any); ok {
		branch := list[s.IntN(len(list))].(map[string]any)
		if depth <= 0 {
			branch = list[len(list)-1].(map[string]any) // null
		}
		return s.admitted(root, branch, rt, quoted, depth)
	}
	if choices, ok := schema["enum"].([]any); ok {
		return choices[s.IntN(len(choices))]
	}
	kind, _ := schema["type"].(string)
	if list, ok := schema["type"].([]any); ok {
		kind = list[s.IntN(len(list))].(string)
		if depth <= 0 {
			kind = "null"
		}
	}
	switch kind {
	case "null":
		return nil
	case "":
		return s.anything(2)
	case "object":
		return s.object(root, schema, rt, depth)
	case "array":
		items, _ := schema["items"].(map[string]any)
		count := s.IntN(3)
		if fixed, ok := schema["minItems"].(float64); ok {
			count = int(fixed)
		} else if depth <= 0 {
			count = 0
		}
		list := make([]any, count)
		for i := range list {
			list[i] = s.admitted(root, items, rt.Elem(), false, depth-1)
		}
		return list
	}
	value := s.written(rt)
	for value == nil { // of a slice of bytes, which is null or a string
		value = s.written(rt)
	}
	if quoted {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	return value
}

func (s samples) object(root, schema map[string]any, rt reflect.Type, depth int) any {
	object := map[string]any{}
	if rt.Kind() == reflect.Map {
		values, ok := schema["additionalProperties"].(map[string]any)
		if patterns, is := schema["patternProperties"].(map[string]any); is {
			for _, pattern := range patterns {
				values, ok = pattern.(map[string]any)
			}
		}
		if !ok {
			values = map[string]any{}
		}
		for range min(s.IntN(3), max(0, depth)) {
			key := reflect.MakeMap(reflect.MapOf(rt.Key(), reflect.TypeFor[bool]()))
			k := reflect.New(rt.Key()).Elem()
			s.fill(k, 1)
			key.SetMapIndex(k, reflect.ValueOf(true))
			data, err := json.Marshal(key.Interface())
			if err != nil {
				panic(err)
			}
			var names map[string]bool
			if err := json.Unmarshal(data, &names); err != nil {
				panic(err)
			}
			for name := range names {
				if allowed, ok := schema["propertyNames"].(map[string]any); ok {
					name = s.admitted(root, allowed, nil, false, 1).(string)
				}
				object[name] = s.admitted(root, values, rt.Elem(), false, depth-1)
			}
		}
		return object
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	members := membersOf(rt)
	for name, property := range properties {
		needed := false
		for _, r := range required {
			needed = needed || r == name
		}
		if needed || depth > 0 && s.once(2) {
			m := members[name]
			object[name] = s.admitted(root, property.(map[string]any), m.field.Type, m.quoted, depth-1)
		}
	}
	return object
}

// resolve follows references. Keywords next to a reference override those of its target.
func resolve(root, schema map[string]any) map[string]any {
	ref, ok := schema["$ref"].(string)
	if !ok {
		return schema
	}
	target := root
	if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
		target, _ = root["$defs"].(map[string]any)[name].(map[string]any)
	}
	merged := map[string]any{}
	for key, value := range resolve(root, target) {
		merged[key] = value
	}
	for key, value := range schema {
		if key != "$ref" {
			merged[key] = value
		}
	}
	return merged
}
