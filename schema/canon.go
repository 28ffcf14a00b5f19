package schema

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

//go:embed canon.json
var canonFile []byte

// canon is the vocabulary that the revisions share: canonical names with phrases, in the order in
// which texts mention them. A surface maps its own names to canonical ones. Any two surfaces can
// then be compared without code that knows both.
type canon struct {
	Statuses     words `json:"statuses"`
	Purposes     words `json:"purposes"` // for methods and notifications
	Fields       words `json:"fields"`
	MetaKeys     words `json:"metaKeys"`
	Capabilities words `json:"capabilities"`
	Support      words `json:"support"` // for tools; the values of a field
	Cases        words `json:"cases"`   // in which a request is refused
	Aspects      words `json:"aspects"`
}

// words is an ordered list of canonical names with their phrases.
type words []word

type word struct{ name, phrase string }

// UnmarshalJSON keeps the order of the file.
func (w *words) UnmarshalJSON(data []byte) error {
	members, err := Members(data)
	if err != nil {
		return err
	}
	for _, member := range members {
		one := word{name: member.Name}
		if err := json.Unmarshal(member.Value, &one.phrase); err != nil {
			return fmt.Errorf("%s: %w", member.Name, err)
		}
		*w = append(*w, one)
	}
	return nil
}

func (w words) phrase(name string) string {
	for _, one := range w {
		if one.name == name {
			return one.phrase
		}
	}
	return ""
}

var loadVocabulary = sync.OnceValues(func() (canon, error) {
	var c canon
	if err := decodeStrict(canonFile, &c); err != nil {
		return c, fmt.Errorf("schema/canon.json: %w", err)
	}
	return c, nil
})
