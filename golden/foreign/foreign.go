// Package foreign has tools whose types are other packages', with names that collide.
package foreign

import (
	"context"

	other2 "github.com/mcptaskgen/mcptaskgen/golden/foreign/elsewhere/other"
	"github.com/mcptaskgen/mcptaskgen/golden/foreign/other"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Foreign takes types of other packages and returns them.
//
//mcptask:service
type Foreign interface {
	// Others takes a type that has the name of another package's type, and of a parameter's.
	Others(ctx context.Context, in other.Context) (Both, error)
	// Near returns a type of the package whose name two packages have.
	Near(ctx context.Context, task *mcptask.Task, in other.Node) (other2.Node, error)
	// Both takes the types of one name, of all three packages.
	Both(ctx context.Context, in Both) (*Both, error)
}

// Both uses types of one name.
type Both struct {
	Here      Node          `json:"here"`
	There     other.Node    `json:"there"`
	Elsewhere other2.Node   `json:"elsewhere"`
	Again     *Node         `json:"again,omitempty"`
	Theirs    []other.Node  `json:"theirs"`
	Others    []other2.Node `json:"others"`
}

// Node is the first Node.
type Node struct {
	ID int `json:"id"`
}
