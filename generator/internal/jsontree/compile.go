package jsontree

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// SchemaError is the reason why a value is not a JSON Schema.
type SchemaError struct {
	At      *Node // the mistake, or the whole schema
	Message string
}

func (e *SchemaError) Error() string { return e.Message }

// Schema checks values against a JSON Schema.
type Schema struct{ compiled *validator.Schema }

// CompileSchema compiles a JSON Schema as the runtime does for arguments. Its error is a
// [*SchemaError].
func (n *Node) CompileSchema() (*Schema, error) {
	if huge := n.findHugeNumber(); huge != nil {
		return nil, &SchemaError{huge, "the number " + huge.Compact() + " is too long or too large, or its exponent is not from -307 to 308"}
	}
	compiled, err := n.compile()
	if err == nil {
		return &Schema{compiled}, nil
	}
	fault := &SchemaError{n, strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), schemaURL, "")), " ")}
	var refused *validator.SchemaValidationError
	if errors.As(err, &refused) {
		if path, text := describeInvalid(refused.Err); text != "" {
			fault.At, fault.Message = n.at(path), text
		}
	}
	return nil, fault
}

// Refuse returns the reason why the schema does not admit a value, or "".
func (s *Schema) Refuse(value *Node) string {
	decoded, err := validator.UnmarshalJSON(strings.NewReader(value.Compact()))
	if err != nil {
		return err.Error()
	}
	_, text := describeInvalid(s.compiled.Validate(decoded))
	return text
}

// describeInvalid returns the first cause of an error of the validator and the path of the value with
// it. The message is "" if there is no such cause.
func describeInvalid(err error) (path []string, text string) {
	var invalid *validator.ValidationError
	if !errors.As(err, &invalid) {
		return nil, ""
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	return invalid.InstanceLocation, invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}

const schemaURL = "schema:///"

func (n *Node) compile() (*validator.Schema, error) {
	value, err := validator.UnmarshalJSON(strings.NewReader(n.Compact()))
	if err != nil {
		return nil, err
	}
	c := validator.NewCompiler()
	c.UseLoader(noDocuments{})
	c.DefaultDraft(validator.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(schemaURL, value); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// noDocuments loads no other documents.
type noDocuments struct{}

func (noDocuments) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document", url)
}

// at returns the value at a path of names and indexes. The path may end with the name of a member.
func (n *Node) at(path []string) *Node {
	for _, step := range path {
		if next := n.Step(step); next != nil {
			n = next
		}
	}
	return n
}

// findHugeNumber returns a number that the runtime refuses, or nil. Libraries compute with some of
// these for long, and fail on others.
func (n *Node) findHugeNumber() *Node {
	if number, ok := n.Value.(json.Number); ok {
		_, written, _ := strings.Cut(strings.ToLower(number.String()), "e")
		exponent, err := strconv.Atoi(cmp.Or(written, "0"))
		if _, tooLarge := number.Float64(); err != nil || tooLarge != nil || exponent < -307 || exponent > 308 || len(number) > 1000 {
			return n
		}
	}
	for _, m := range n.Members {
		if huge := m.Value.findHugeNumber(); huge != nil {
			return huge
		}
	}
	for _, item := range n.Items {
		if huge := item.findHugeNumber(); huge != nil {
			return huge
		}
	}
	return nil
}
