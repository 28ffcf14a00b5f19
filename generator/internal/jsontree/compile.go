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

// SchemaError says why a value is no JSON Schema.
type SchemaError struct {
	At      *Node // the mistake, or the whole schema
	Message string
}

func (e *SchemaError) Error() string { return e.Message }

// CompileSchema compiles a JSON Schema as the runtime does. Its error is a [*SchemaError].
func (n *Node) CompileSchema() (*validator.Schema, error) {
	if huge := n.findHugeNumber(); huge != nil {
		return nil, &SchemaError{huge, "the number " + huge.Compact() + " is too long, or its exponent is not from -307 to 308"}
	}
	schema, err := n.compile()
	if err == nil {
		return schema, nil
	}
	fault := &SchemaError{n, strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), schemaURL, "")), " ")}
	var refused *validator.SchemaValidationError
	var invalid *validator.ValidationError
	if errors.As(err, &refused) && errors.As(refused.Err, &invalid) {
		for len(invalid.Causes) > 0 {
			invalid = invalid.Causes[0]
		}
		fault.At, fault.Message = n.at(invalid.InstanceLocation), invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	}
	return nil, fault
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
