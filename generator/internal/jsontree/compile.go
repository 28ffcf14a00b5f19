package jsontree

import (
	"errors"
	"fmt"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// CompileSchema compiles a JSON Schema as the runtime does. Its error says what is wrong on one line.
func (n *Node) CompileSchema() (*validator.Schema, error) {
	value, err := validator.UnmarshalJSON(strings.NewReader(n.Compact()))
	if err != nil {
		return nil, err
	}
	const url = "schema:///"
	c := validator.NewCompiler()
	c.UseLoader(noDocuments{})
	c.DefaultDraft(validator.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(url, value); err != nil {
		return nil, err
	}
	schema, err := c.Compile(url)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(strings.Join(strings.Fields(err.Error()), " "), url, ""))
	}
	return schema, nil
}

// noDocuments loads no other documents.
type noDocuments struct{}

func (noDocuments) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document", url)
}
