package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// object is a JSON object that keeps the order of its members. Values are *object, []any, string,
// json.Number, bool or nil.
type object struct {
	keys   []string
	values map[string]any
}

func newObject(pairs ...any) *object {
	o := &object{values: map[string]any{}}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) get(key string) any { return o.values[key] }

func (o *object) has(key string) bool {
	_, ok := o.values[key]
	return ok
}

func (o *object) set(key string, value any) {
	if !o.has(key) {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

func (o *object) remove(key string) {
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

func (o *object) child(key string) (*object, bool) {
	c, ok := o.values[key].(*object)
	return c, ok
}

// cloneValue copies a value, so that a schema can be used in two places.
func cloneValue(value any) any {
	switch v := value.(type) {
	case *object:
		c := newObject()
		for _, k := range v.keys {
			c.set(k, cloneValue(v.values[k]))
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = cloneValue(v[i])
		}
		return c
	}
	return value
}

// nestsDeeper reports whether a value nests deeper than limit.
func nestsDeeper(value any, limit int) bool {
	switch v := value.(type) {
	case *object:
		return limit <= 0 || slices.ContainsFunc(v.keys, func(k string) bool { return nestsDeeper(v.values[k], limit-1) })
	case []any:
		return limit <= 0 || slices.ContainsFunc(v, func(item any) bool { return nestsDeeper(item, limit-1) })
	}
	return false
}

// decodeJSON decodes one JSON value and keeps the order of members.
func decodeJSON(src []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	value, err := decodeValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the JSON value")
	}
	return value, nil
}

// maxDepth is the maximum nesting depth of values. Real schemas are far below it.
const maxDepth = 500

func decodeValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if _, nested := token.(json.Delim); nested && depth >= maxDepth {
		return nil, fmt.Errorf("its values nest deeper than %d", maxDepth)
	}
	switch token {
	case json.Delim('{'):
		o := newObject()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string) // the decoder allows no other key
			if o.has(name) {
				return nil, fmt.Errorf("duplicate member %q", name)
			}
			value, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.set(name, value)
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}
