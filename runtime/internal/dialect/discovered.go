package dialect

import (
	"encoding/json"
	"slices"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Discovered adds to the result of a server/discover, in the base's words, the
// protocol versions that are spoken by translation. own is that of the request: what
// the services declare in it counts too. nil is none.
func Discovered(s *mcptask.Server, own *Translation, spoken []*Translation, result json.RawMessage) (json.RawMessage, error) {
	return editObject(result, func(o object) error {
		var versions []string
		if err := json.Unmarshal(o["supportedVersions"], &versions); err != nil {
			return err
		}
		for _, t := range spoken {
			if !slices.Contains(versions, t.Protocol) {
				versions = append(versions, t.Protocol)
			}
		}
		var err error
		if o["supportedVersions"], err = json.Marshal(versions); err != nil || own == nil {
			return err
		}
		joined, err := joinedCapabilities(s, own.Revision)
		if err != nil || joined == nil {
			return err
		}
		return declared(o, own.Declared(joined))
	})
}
