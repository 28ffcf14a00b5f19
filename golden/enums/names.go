package enums

import (
	"context"

	"github.com/mcptaskgen/mcptaskgen/golden/enums/palette"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Named takes enums of integers that are names in JSON, and returns them.
//
//mcptask:service
type Named interface {
	// Rank takes them as fields and keys, in lists and maps.
	Rank(ctx context.Context, in Ranks) (Ranks, error)
	// Prefer asks for them, before it starts and once more when it has.
	Prefer(ctx context.Context, task *mcptask.Task, first Preference) (Preferred, error)
	// Overload fails with them.
	Overload(ctx context.Context, task *mcptask.Task, in Load) error
}

// Urgency is how soon it has to be done.
//
//mcptask:enum strings
type Urgency int

// The urgencies.
const (
	UrgencyNone  Urgency = iota // UrgencyNone is the zero value.
	UrgencySoon                 // this week
	UrgencyToday                // UrgencyToday is before midnight.
	HTTPUrgency

	UrgencyWeb = HTTPUrgency // when the website is down
	urgencies  = iota        // how many there are
)

// weight is how heavy it is. Its constants are not exported, and one number has none.
//
//mcptask:enum strings
type weight int8

const (
	weightLight weight = iota - 1
	weightNormal
	_
	weightHeavy
	weight100
)

// Weight makes the type known to others.
type Weight = weight

// Weights returns all weights.
func Weights() []Weight { return []Weight{weightLight, weightNormal, weightHeavy, weight100} }

// Ranks has enums of names wherever they can stand.
type Ranks struct {
	Urgency Urgency `json:"urgency"`
	// Maybe is optional as a pointer: the zero value has a name.
	Maybe *Urgency `json:"maybe" jsonschema:"enum=none,enum=today"`
	// Default is how soon the others are: UrgencySoon, unless it is HTTPUrgency.
	Default  Urgency                                     `json:"default,omitempty" jsonschema:"default=soon"`
	Weight   Weight                                      `json:"weight"`
	Finish   palette.Finish                              `json:"finish,omitempty"`
	List     []Urgency                                   `json:"list" jsonschema:"uniqueItems=true"`
	Defaults []Urgency                                   `json:"defaults,omitempty" jsonschema:"default=soon,default=http"`
	Finishes []palette.Finish                            `json:"finishes"` // a list, although its elements are bytes
	Pair     [2]weight                                   `json:"pair"`
	Counts   map[Urgency]int                             `json:"counts"`
	ByWeight map[string][]*weight                        `json:"by_weight"`
	Keyed    map[palette.Finish]map[Weight]Page[Urgency] `json:"keyed"`
}

// Preference is a question with enums of names.
//
//mcptask:input message="Which?"
type Preference struct {
	// Urgency is how soon.
	Urgency  Urgency          `json:"urgency"`
	Finishes []palette.Finish `json:"finishes" jsonschema:"minItems=1,uniqueItems=true"`
	Weight   *Weight          `json:"weight,omitempty"`
}

// Preferred is what was preferred.
type Preferred struct {
	Urgency Urgency        `json:"urgency"`
	Finish  palette.Finish `json:"finish"`
}

// Load is how much there is to do.
type Load struct {
	Urgency Urgency `json:"urgency"`
}

// Overloaded is the error of too much load.
//
//mcptask:error code=overloaded
type Overloaded struct {
	Urgency Urgency `json:"urgency"`
}

func (o Overloaded) Error() string { return "there is too much to do" }

// Unnamed returns a value of Urgency without a name.
func Unnamed() Urgency { return Urgency(urgencies) }
