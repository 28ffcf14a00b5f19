// Serves the tools of the random types beside it. TestRandomTypes builds it. Each line of its input is a request,
// each line of its output the answer.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// tool describes a tool, in the first line of the output.
type tool struct {
	Name          string
	Input, Output json.RawMessage
}

// request asks for random values of a tool's type, and for calls with arguments.
type request struct {
	Tool      string
	Values    uint64
	Arguments []json.RawMessage
}

// answer has a value that a call returned, or what was said of the arguments.
type answer struct {
	// Written is the value as encoding/json writes it, and Sent as a generated client sends it.
	Written, Sent json.RawMessage
	Value         json.RawMessage
	Refusal       string
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	server, err := taskserver.New(taskserver.Options{}, RandomTools(echo{}))
	if err != nil {
		return err
	}
	defer server.Close()
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	var tools []tool
	for _, spec := range server.Backend().Tools() {
		tools = append(tools, tool{spec.Name, json.RawMessage(spec.InputSchema), json.RawMessage(spec.OutputSchema)})
	}
	if err := encoder.Encode(tools); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return err
		}
		answers := make([]answer, 0, len(r.Arguments))
		spec, _ := server.Backend().Tool(r.Tool)
		for seed := range r.Values {
			written, err := write(types[r.Tool], seed)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", r.Tool, seed, err)
			}
			r.Arguments = append(r.Arguments, written)
		}
		for _, arguments := range r.Arguments {
			a, err := call(server, r.Tool, arguments)
			if err == nil {
				a.Written = arguments
				a.Sent, err = json.Marshal(mcptask.WithoutNull(arguments, spec.InputSchema))
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", r.Tool, arguments, err)
			}
			answers = append(answers, a)
		}
		if err := encoder.Encode(answers); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

// call calls a tool. Its handler returns its input.
func call(server *taskserver.Server, tool string, arguments json.RawMessage) (answer, error) {
	caller := taskserver.Caller{Principal: "p", Revision: mcptask.Revision20251125}
	reply, err := server.Backend().Call(context.Background(), caller, tool, arguments, taskserver.CallRequest{})
	if err != nil {
		return answer{}, err
	}
	if reply.Outcome.Error != nil {
		return answer{Refusal: reply.Outcome.Error.Error()}, nil
	}
	var result struct {
		StructuredContent json.RawMessage
		Content           []struct{ Text string }
	}
	if err := json.Unmarshal(reply.Outcome.Result, &result); err != nil || reply.Outcome.IsError {
		return answer{Refusal: result.Content[0].Text}, err
	}
	return answer{Value: result.StructuredContent}, nil
}

// write returns a random value of a type as encoding/json writes it. Seed 0 means the zero value, as far as enums and
// tags admit it.
func write(t reflect.Type, seed uint64) (json.RawMessage, error) {
	v := reflect.New(t)
	f := filler{rand.New(rand.NewPCG(seed, 0)), seed == 0}
	f.fill(v.Elem(), 6)
	return json.Marshal(v.Interface())
}

// filler makes random values.
type filler struct {
	*rand.Rand

	zero bool
}

// known has the values, as JSON, of types that cannot be filled field by field. That of index 0 stands for the zero value.
var known = map[reflect.Type][]string{
	reflect.TypeFor[time.Time]():       {`"0001-01-01T00:00:00Z"`, `"2026-02-03T04:05:06.789+01:00"`},
	reflect.TypeFor[netip.Addr]():      {`""`, `"10.0.0.1"`, `"::1"`},
	reflect.TypeFor[json.Number]():     {`0`, `-1.5e3`, `12345678901234567890`},
	reflect.TypeFor[json.RawMessage](): {`null`, `{"a":[1,true,"x"]}`, `7`},
	reflect.TypeFor[big.Int]():         {`0`, `-7`, `123456789012345678901234567890`},
}

func (f filler) fill(v reflect.Value, depth int) {
	if list := append(known[v.Type()], samples[v.Type()]...); len(list) > 0 {
		f.take(v, list)
		return
	}
	if f.zero && v.Kind() != reflect.Struct && v.Kind() != reflect.Array {
		return
	}
	end := depth <= 0 || f.IntN(4) == 0
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "a", "Ünï\xff", "<&>", "a\nb\"`", "\u2028", "12", "null", strings.Repeat("x", 40)}[f.IntN(9)])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := int64(math.MaxInt64) >> (64 - v.Type().Bits())
		v.SetInt([]int64{0, 1, -1, most, -most - 1}[f.IntN(5)])
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint([]uint64{0, 1, math.MaxUint64 >> (64 - v.Type().Bits())}[f.IntN(3)])
	case reflect.Float32:
		v.SetFloat([]float64{0, -0.5, math.MaxFloat32, -math.MaxFloat32, float64(float32(f.NormFloat64()))}[f.IntN(5)])
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -0.5, 1e21, -math.MaxFloat64, f.NormFloat64()}[f.IntN(6)])
	case reflect.Pointer:
		if !end {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if !end {
			v.Set(reflect.MakeSlice(v.Type(), f.IntN(3), 3))
			f.fillItems(v, depth-1)
		}
	case reflect.Array:
		f.fillItems(v, depth-1)
	case reflect.Map:
		if !end {
			v.Set(reflect.MakeMap(v.Type()))
			for range f.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				f.fill(key, depth-1)
				f.fill(value, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Interface:
		f.take(v, []string{`null`, `1.5`, `"x"`, `[{"k":true}]`})
	case reflect.Struct:
		for i := range v.NumField() {
			if text := v.Type().Field(i).Tag.Get("sample"); text != "" {
				var list []json.RawMessage
				if err := json.Unmarshal([]byte(text), &list); err != nil {
					panic(err)
				}
				f.take(v.Field(i), list)
				continue
			}
			f.fill(v.Field(i), depth-1)
		}
	}
}

// fillItems fills the items of a list. None of them is a nil pointer, because the items of arguments are never null.
func (f filler) fillItems(list reflect.Value, depth int) {
	for i := range list.Len() {
		item := list.Index(i)
		for ; item.Kind() == reflect.Pointer && known[item.Type()] == nil; item = item.Elem() {
			item.Set(reflect.New(item.Type().Elem()))
		}
		f.fill(item, depth)
	}
}

// take sets a value to one of a list.
func (f filler) take(v reflect.Value, list any) {
	i, values := 0, reflect.ValueOf(list)
	if !f.zero {
		i = f.IntN(values.Len())
	}
	text := values.Index(i).Convert(reflect.TypeFor[[]byte]()).Bytes()
	if err := json.Unmarshal(text, v.Addr().Interface()); err != nil {
		panic(fmt.Sprintf("%s into a %s: %v", text, v.Type(), err))
	}
}
