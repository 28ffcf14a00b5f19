package value

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// maxPath bounds the bytes of the JSON around a place that is looked for, so that a deep value costs little.
const maxPath = 1 << 10

// These constants bound the bytes that a search decodes, because a value may come from anyone. A search that is given up
// returns the path so far, which leads to the failing part.
const (
	baseSearch    = 256 << 10
	searchPerByte = 4
	searchPerPart = 64 // what decoding costs even if a part is small, in bytes
)

// findPlace returns the path to a part of a value that fails by itself, such as "steps.2.when", or "". The decoder does
// not know the place of an error of a type's own method, and names embedded structs of Go in others. fails reports
// whether a value that has nothing but one path into the whole fails for the same reason as the whole.
func findPlace(value json.RawMessage, fails func(json.RawMessage) bool) string {
	place, before, after := "", "", ""
	budget := baseSearch + searchPerByte*len(value)
	pay := func(size int) bool {
		budget -= size + searchPerPart
		return budget >= 0
	}
	enter := func(step, open string, part json.RawMessage, end string) bool {
		if !pay(len(before)+len(open)+len(part)+len(end)+len(after)) || !fails(slices.Concat([]byte(before+open), part, []byte(end+after))) {
			return false
		}
		if place != "" {
			place += "."
		}
		place, before, after, value = place+text.Shorten(step, 64), before+open, end+after, part
		return true
	}
	for entered := true; entered && len(before) < maxPath && pay(2*len(value)); {
		entered = false
		var members map[string]json.RawMessage
		var items []json.RawMessage
		switch {
		case json.Unmarshal(value, &members) == nil && !fails([]byte(before+"{}"+after)): // else it is the object itself
			for _, name := range slices.Sorted(maps.Keys(members)) {
				quoted, _ := json.Marshal(name) // a string always encodes
				if entered = enter(name, "{"+string(quoted)+":", members[name], "}"); entered {
					break
				}
			}
		case json.Unmarshal(value, &items) == nil && !fails([]byte(before+"[]"+after)):
			for i, item := range items {
				if entered = enter(strconv.Itoa(i), "[", item, "]"); entered {
					break
				}
			}
		}
	}
	return place
}
