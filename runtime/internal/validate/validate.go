// Package validate checks JSON against the schemas of tools and questions.
//
// The work and memory of a check are proportional to its input. A schema comes from an author, but
// a value may come from anyone. So the library only compiles the schemas. A walker of our own
// checks the values, because the library cannot be stopped and keeps every fault.
package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// unlimited is the step budget for values from the author of a schema.
const unlimited = math.MaxInt

// Schema checks JSON against one compiled schema. It is safe for concurrent use.
type Schema struct {
	rule        *rule
	hasDefaults bool            // the rules have presets
	properties  map[string]bool // the names of all properties that it declares
}

// Compile compiles a JSON Schema 2020-12 whose root has type object. It refuses references to other
// documents and dynamic references, and loads nothing. formats turns on the check of formats, for example of times in
// answers, which must decode.
func Compile(schema string, formats bool) (*Schema, error) {
	if _, err := read(context.Background(), []byte(schema)); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if root, ok := doc.(map[string]any); !ok || root["type"] != "object" {
		return nil, errors.New(`its root must have "type": "object"`)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertContent() // so that it keeps contentEncoding, which tells a byte slice
	if formats {
		c.AssertFormat()
	}
	const url = "schema:tool"
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return nil, err
	}
	return translate(compiled)
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s: put the definition under $defs", url)
}

// Check returns the first faults of a value in one line, or nil. It refuses values beyond MaxDepth,
// MaxNumber, MinExponent and MaxExponent, and objects that have a member twice. It gives up after
// BaseSteps and StepsPerByte. Soon after ctx ends, it returns the cause.
func (v *Schema) Check(ctx context.Context, value json.RawMessage) error {
	_, err := v.check(ctx, value, asGiven)
	return err
}

// CheckResult checks a value that Go code has encoded, and returns it as it is to be sent: a null is an empty list, map or
// byte slice wherever the schema has such and no null. With an error, it also returns the paths of the properties at fault,
// such as "steps[].name", which say nothing of the value: "*" stands for a name that the schema does not declare.
func (v *Schema) CheckResult(ctx context.Context, value json.RawMessage) (plain json.RawMessage, properties []string, err error) {
	c, err := v.check(ctx, value, fromHandler)
	if err == nil {
		return c.encoded(value), nil, nil
	}
	if c.err == nil {
		properties = c.listProperties(v.properties)
	}
	return value, properties, err
}

// PlainArguments returns arguments that Go code has encoded as they are to be sent: a null is left out, or an empty list,
// map or byte slice, as [Schema.CheckAndFill] takes it. It returns a value that it cannot read unchanged.
func (v *Schema) PlainArguments(value json.RawMessage) json.RawMessage {
	return v.plain(context.Background(), value, fromCaller)
}

// PlainResult returns a value that Go code has encoded as [Schema.CheckResult] does, without the check.
func (v *Schema) PlainResult(value json.RawMessage) json.RawMessage {
	return v.plain(context.Background(), value, fromHandler)
}

// PlainAnswer returns a person's answer without the members that mean "left out": null, and "" for no choice. It returns a
// value that it cannot read unchanged.
func (v *Schema) PlainAnswer(ctx context.Context, value json.RawMessage) json.RawMessage {
	return v.plain(ctx, value, fromForm)
}

func (v *Schema) plain(ctx context.Context, value json.RawMessage, from origin) json.RawMessage {
	d, err := read(ctx, value)
	if err != nil || d.repeated > 0 {
		return value
	}
	plain, err := plainNulls(ctx, v.rule, d, from)
	if err != nil || plain == d {
		return value
	}
	return json.RawMessage(plain.text)
}

// CheckAndFill checks a value as Check does, and returns it as a decoder is to read it: the properties that its objects
// leave out have the defaults of their schemas. It also refuses a member that encoding/json would take for a property
// whose name differs only in case: the schema of that property would not count.
//
// A null that a member's schema does not admit counts as left out, unless the object requires the member. Then, as in a
// list or a map, it is an empty list, map or byte slice, if the schema is of such.
//
// All else stays as it is: an object that is left out is not made for the defaults inside. Defaults are found through
// properties, items, additional properties, $ref, allOf, and in anyOf and oneOf if null is the only alternative. No
// default is filled in that its own schema refuses. If the value does not fit its schema with its defaults, because of
// maxProperties for one, it stays as it is. A value that gets too long is an error.
func (v *Schema) CheckAndFill(ctx context.Context, value json.RawMessage) (json.RawMessage, error) {
	c, err := v.check(ctx, value, fromCaller)
	if err != nil {
		return value, err
	}
	if value = c.encoded(value); !v.hasDefaults {
		return value, nil
	}
	filled, err := fillDefaults(v.rule, c.document, BaseFilled+FilledPerByte*len(value), func(r *rule) []preset { return r.presets })
	if err != nil {
		return filled, err
	}
	if len(filled) > len(value) {
		if refused := v.Check(ctx, filled); refused != nil {
			filled = value
		}
	}
	return filled, nil
}

// check checks a value, without the nulls that plainNulls replaces.
func (v *Schema) check(ctx context.Context, value json.RawMessage, from origin) (*checker, error) {
	c := &checker{ctx: ctx, exact: from == fromCaller, budget: BaseSteps + StepsPerByte*len(value), poll: pollEvery}
	d, err := read(ctx, value)
	if c.document = d; err != nil {
		return c, err
	}
	if c.repeated > 0 {
		return c, withPlace(c.place(c.repeated), errors.New("the object has this member twice"))
	}
	if c.document, err = plainNulls(ctx, v.rule, d, from); err != nil {
		return c, err
	}
	c.isEdited = c.document != d
	switch fits := c.check(v.rule, 0, nil); {
	case c.err != nil:
		return c, c.err
	case !fits:
		return c, errors.New(c.describe())
	}
	return c, nil
}

// encoded returns the value that was checked.
func (c *checker) encoded(given json.RawMessage) json.RawMessage {
	if c.isEdited {
		return json.RawMessage(c.text)
	}
	return given
}
