package mcptask

import (
	"encoding/json"
	"reflect"
	"strings"
)

// EncodeObject encodes a struct and its additional properties as one JSON object. The MarshalJSON
// methods of generated types call it.
func EncodeObject[T any](fields any, additional map[string]T) ([]byte, error) {
	data, err := json.Marshal(fields)
	if err != nil || len(additional) == 0 {
		return data, err
	}
	more, err := json.Marshal(additional)
	if err != nil || string(data) == "{}" {
		return more, err
	}
	data[len(data)-1] = ','
	return append(data, more[1:]...), nil
}

// DecodeObject decodes a JSON object into the struct that fields points to, and the properties that
// have no field there into additional, which is nil if there are none. It goes by the names in json
// tags. The UnmarshalJSON methods of generated types call it.
func DecodeObject[T any](data []byte, fields any, additional *map[string]T) error {
	if err := json.Unmarshal(data, fields); err != nil {
		return err
	}
	var rest map[string]json.RawMessage
	if err := json.Unmarshal(data, &rest); err != nil {
		return err
	}
	known := reflect.TypeOf(fields).Elem()
	for i := range known.NumField() {
		if tag := known.Field(i).Tag.Get("json"); tag != "-" {
			name, _, _ := strings.Cut(tag, ",")
			delete(rest, name)
		}
	}
	*additional = nil
	if len(rest) > 0 {
		*additional = make(map[string]T, len(rest))
	}
	for name, value := range rest {
		var property T
		if err := json.Unmarshal(value, &property); err != nil {
			return err
		}
		(*additional)[name] = property
	}
	return nil
}
