// Package other holds types that the tools of another package use.
package other

import "time"

// Meta says where something comes from.
type Meta struct {
	// Source is the system that sent it.
	Source string    `json:"source"`
	At     time.Time `json:"at"` // when it was sent
}

// Node has the name of a type in another package.
type Node struct {
	// Label is what people call it.
	Label string `json:"label"`
}

// Context has the name of a parameter's type.
type Context struct {
	Meta

	Tags []string `json:"tags,omitempty"`
}
