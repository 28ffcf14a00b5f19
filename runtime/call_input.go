package mcptask

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
)

// withoutNull encodes the arguments of WithoutNull.
type withoutNull func() (json.RawMessage, error)

// MarshalJSON implements json.Marshaler.
func (encode withoutNull) MarshalJSON() ([]byte, error) { return encode() }

// WithoutNull returns arguments for [Run] and [Start] that are sent without the nulls that the tool's input schema does not
// have: a nil pointer is left out, and a nil list, map or byte slice is empty, or left out if the tool does not require it.
// Otherwise nil values are sent as encoding/json writes them. Servers of this module read both alike, but others may refuse a
// null. Generated clients call WithoutNull. If the schema cannot be used, Run and Start return an error.
func WithoutNull[In any](in In, inputSchema string) json.Marshaler {
	return withoutNull(func() (json.RawMessage, error) {
		schema, err := compileInput(inputSchema)
		if err != nil {
			return nil, fmt.Errorf("the input schema: %w", err)
		}
		data, err := value.Marshal(in)
		if err != nil {
			return nil, err
		}
		return schema.PlainArguments(data), nil
	})
}

// inputSchemas caches the compiled schemas of WithoutNull by their texts. A program has few.
var inputSchemas sync.Map

func compileInput(text string) (*validate.Schema, error) {
	if known, ok := inputSchemas.Load(text); ok {
		return known.(*validate.Schema), nil //nolint:forcetypeassert // the map has no others
	}
	schema, err := validate.Compile(text, false)
	if err == nil {
		inputSchemas.Store(text, schema)
	}
	return schema, err
}

// encodeInput encodes arguments.
func encodeInput[In any](in In) (json.RawMessage, error) {
	if encode, ok := any(in).(withoutNull); ok {
		return encode()
	}
	return value.Marshal(in)
}
