// Package validate checks JSON against the schemas of tools and questions.
//
// A check takes work and memory in proportion to what it checks, whatever that is: a schema is its
// author's, but a value may be anybody's. So the library compiles the schemas, and what walks
// values is our own: the library cannot be stopped, and keeps every fault that it finds.
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

// unlimited is the budget of work on what a schema's author wrote.
const unlimited = math.MaxInt

// Schema checks JSON against one compiled schema. It is safe for
// concurrent use.
type Schema struct{ rule *rule }

// Compile reads a JSON Schema 2020-12 whose root has type object. References
// to other documents are refused: nothing is ever loaded.
// formats says that they count, as for times in answers, which must decode.
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
	rule, err := translate(compiled, schema)
	if err != nil {
		return nil, err
	}
	return &Schema{rule}, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s: put the definition under $defs", url)
}

// Check returns the first faults of a value, in one line, or nil. It refuses
// values beyond MaxDepth, MaxNumber, MinExponent and MaxExponent and objects that have a member twice, gives up
// after BaseSteps and StepsPerByte, and soon after ctx ends, with its cause.
func (v *Schema) Check(ctx context.Context, value json.RawMessage) error {
	_, err := v.check(ctx, value)
	return err
}

// check also counts the steps that it took.
func (v *Schema) check(ctx context.Context, value json.RawMessage) (steps int, err error) {
	d, err := read(ctx, value)
	if err != nil {
		return 0, err
	}
	if d.repeated > 0 {
		return 0, placed(d.place(d.repeated), errors.New("the object has this member twice"))
	}
	c := &checker{document: d, ctx: ctx, budget: BaseSteps + StepsPerByte*len(value), poll: pollEvery}
	switch fits := c.check(v.rule, 0, nil); {
	case c.err != nil:
		return c.steps, c.err
	case !fits:
		return c.steps, errors.New(c.describe())
	}
	return c.steps, nil
}
