package jsonschema

import (
	"fmt"
	"go/types"
)

// keyPatterns has the pattern of the keys that encoding/json writes for a map with integer keys: no leading zeros, no
// "-0". For 8 and 16 bits it admits exactly the values of the type. For more bits it bounds the number of digits, and
// the decoder refuses the rest.
var keyPatterns = map[types.BasicKind]string{
	types.Uint8:  `^(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])$`,
	types.Int8:   `^(0|-?([1-9][0-9]?|1[01][0-9]|12[0-7])|-128)$`,
	types.Uint16: `^(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`,
	types.Int16:  `^(0|-?([1-9][0-9]{0,3}|[12][0-9]{4}|3[01][0-9]{3}|32[0-6][0-9]{2}|327[0-5][0-9]|3276[0-7])|-32768)$`,
	types.Uint32: `^(0|[1-9][0-9]{0,9})$`,
	types.Int32:  `^(0|-?[1-9][0-9]{0,9})$`,
	types.Uint:   `^(0|[1-9][0-9]{0,19})$`,
	types.Uint64: `^(0|[1-9][0-9]{0,19})$`,
	types.Int:    `^(0|-?[1-9][0-9]{0,18})$`,
	types.Int64:  `^(0|-?[1-9][0-9]{0,18})$`,
}

// keyPattern returns the pattern of a map's keys. It is empty if any text may be a key.
func (g *graph) keyPattern(t types.Type) (string, error) {
	if g.writesNames(t) {
		return "", nil
	}
	b, basic := t.Underlying().(*types.Basic)
	if text, err := g.isTextual(t); text && (basic || valueHasMethod(t, "MarshalText")) { // encoding/json cannot take the address of a key
		return "", err
	}
	if basic {
		if pattern := keyPatterns[b.Kind()]; pattern != "" || b.Info()&types.IsString != 0 {
			return pattern, nil
		}
	}
	return "", &refusal{fmt.Sprintf("a map with keys of type %s cannot be represented in JSON", types.TypeString(t, nil)), "use string keys"}
}
