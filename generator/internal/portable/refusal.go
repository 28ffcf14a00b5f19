package portable

import "slices"

// Refusals collects findings, in the order in which they are added. P is a position in the caller's terms.
type Refusals[P any] struct {
	List  []*Refusal[P]
	known map[refusalKey]*Refusal[P]
}

// Refusal is a row with the places that have its construct and that are reported together.
type Refusal[P any] struct {
	Row    *Row
	At     P // of the first place
	WayOut string

	places []string
	detail string // of all places, or ""
}

type refusalKey struct {
	row   *Row
	owner string
}

// Add adds a place. Those of a row with the same owner become one refusal, with the position and the way out of the first.
func (rs *Refusals[P]) Add(found Finding, owner, place string, at P, wayOut string) {
	key := refusalKey{found.Row, owner}
	r := rs.known[key]
	if r == nil {
		if rs.known == nil {
			rs.known = map[refusalKey]*Refusal[P]{}
		}
		r = &Refusal[P]{Row: found.Row, At: at, WayOut: wayOut, detail: found.Detail}
		rs.known[key] = r
		rs.List = append(rs.List, r)
	}
	if !slices.Contains(r.places, place) {
		r.places = append(r.places, place)
	}
	if r.detail != found.Detail {
		r.detail = ""
	}
}

// Message describes the refusal, with its places.
func (r *Refusal[P]) Message() string { return r.Row.message(r.places, r.detail) }
