// Package validate checks JSON against the schemas of tools and questions.
package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema checks JSON against one compiled schema. It is safe for
// concurrent use.
type Schema struct{ schema *jsonschema.Schema }

// Compile reads a JSON Schema 2020-12 whose root has type object. References
// to other documents are refused: nothing is ever loaded.
// formats says that they count, as for times in answers, which must decode.
func Compile(schema string, formats bool) (*Schema, error) {
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
	return &Schema{compiled}, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s: put the definition under $defs", url)
}

// Check returns what does not fit, in one line, or nil.
func (v *Schema) Check(value json.RawMessage) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	err = v.schema.Validate(doc)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	printer := message.NewPrinter(language.English)
	var faults []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			place := strings.Join(e.InstanceLocation, ".")
			if place != "" {
				place += ": "
			}
			faults = append(faults, place+e.ErrorKind.LocalizedString(printer))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(invalid)
	slices.Sort(faults) // the validator walks maps
	const most = 5
	if faults = slices.Compact(faults); len(faults) > most {
		faults = append(faults[:most], fmt.Sprintf("and %d more", len(faults)-most))
	}
	return errors.New(strings.Join(faults, "; "))
}
