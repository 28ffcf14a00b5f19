// Package enums has tools whose types are enums: types with constants.
package enums

import (
	"context"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/enums/palette"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Enums takes enums wherever they can stand and returns them.
//
//mcptask:service
type Enums interface {
	// Run takes enums of this package.
	Run(ctx context.Context, task *mcptask.Task, in Job) (Job, error)
	// Paint takes enums of other packages.
	Paint(ctx context.Context, in Wall) (Wall, error)
	// Collect takes enums in lists and maps.
	Collect(ctx context.Context, in Lists) (Lists, error)
	// Choose asks for enums, before it starts and once more when it has.
	Choose(ctx context.Context, task *mcptask.Task, first Choice) (Job, error)
}

// Mode is how a job runs.
type Mode string

// The modes.
const (
	// ModeFast skips the tests. It is for those who know what they do.
	ModeFast Mode = "fast"
	// ModeFull runs everything.
	ModeFull Mode = "full"
	// What nobody should use any more.
	ModeOld Mode = "old"

	// ModeDefault is another name for a value.
	ModeDefault = ModeFull
	modeSecret  = Mode("secret") // not exported, so nobody's choice
)

// Priority is the place in the queue.
//
//mcptask:enum
type Priority int

// The priorities.
const (
	PriorityLow Priority = iota - 1
	PriorityNormal
	PriorityHigh // goes before all others
)

// Target has no comments at its constants.
type Target string

// The zero value is one of them.
const (
	TargetNone Target = ""
	TargetWeb  Target = "web"
)

// Size is a number that nothing explains but its constants' names.
//
//mcptask:enum
type Size uint8

// The sizes.
const (
	SizeSmall Size = iota + 1
	SizeLarge
)

// Rights combine, so their constants are not all there is.
//
//mcptask:open
type Rights uint8

// The rights.
const (
	Read Rights = 1 << iota
	Write
	Execute
	All = Read | Write | Execute
)

// Job has enums as fields.
type Job struct {
	// Mode says how to run it.
	Mode Mode `json:"mode,omitempty" jsonschema:"default=full"`
	// Priority is optional as a pointer: 0 is a priority.
	Priority *Priority `json:"priority,omitempty"`
	Target   Target    `json:"target"`
	Size     Size      `json:"size,omitzero"`
	Rights   Rights    `json:"rights"`
	Said     Mode      `json:"said,omitempty" jsonschema:"description=The mode of old."`
	Plain    Mode      `json:"plain,omitempty" jsonschema:"the mode of old"`
	// Some are the choices that the field names itself.
	Some Mode `json:"some,omitempty" jsonschema:"enum=fast,enum=full"`
	// Open takes any text.
	Open   Mode        `json:"open" jsonschema:"type=string"`
	Null   *Target     `json:"null"`
	Quoted Priority    `json:"quoted,string"`
	Month  time.Month  `json:"month"` // of the standard library, so open
	Alias  TargetAlias `json:"alias"`
	Other  Renamed     `json:"other"`
}

// TargetAlias is an alias.
type TargetAlias = Target

// Renamed is another type, without constants of its own.
type Renamed Target

// Wall has enums of other packages, the last through one that only the other imports.
type Wall struct {
	Color palette.Color `json:"color,omitempty"`
	Paint palette.Paint `json:"paint,omitzero"`
}

// Lists has enums in lists and maps.
type Lists struct {
	Modes   []Mode                  `json:"modes"`
	Nested  [][]palette.Color       `json:"nested"`
	Three   [3]Target               `json:"three"`
	Maybe   []*Mode                 `json:"maybe"`
	ByName  map[string]Mode         `json:"by_name"`
	Counts  map[Mode]int            `json:"counts"`
	Queue   map[Priority][]string   `json:"queue"`
	Page    Page[Mode]              `json:"page"`
	Bytes   []Size                  `json:"bytes"` // encoding/json writes a string
	Deep    map[Target]Page[*Size]  `json:"deep"`
	Durable map[Mode]time.Duration  `json:"durable"`
	Waits   []time.Duration         `json:"waits"` // how long each took
	Anyone  []struct{ Mode Target } `json:"anyone"`
}

// Page is generic.
type Page[T any] struct {
	Items []T `json:"items"`
}

// Choice is a question with enums.
//
//mcptask:input message="How?"
type Choice struct {
	// Mode is how.
	Mode Mode `json:"mode"`
	// Modes are also fine.
	Modes    []Mode        `json:"modes" jsonschema:"minItems=1,uniqueItems=true"`
	Color    palette.Color `json:"color,omitempty"`
	Target   *Target       `json:"target,omitempty"`
	Priority Priority      `json:"priority"`
}

// Secret is a value of a type that its enum does not have.
func Secret() Job { return Job{Mode: modeSecret} }
