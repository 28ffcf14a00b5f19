// Package generics has tools whose types have type parameters.
package generics

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Generics takes instances of generic types and returns them.
//
//mcptask:service
type Generics interface {
	// Turn turns a page: an instance as input, an instance of instances as output.
	Turn(ctx context.Context, task *mcptask.Task, in Page[Item]) (Page[Pair[string, *Item]], error)
	// Same takes two instances of one type, which differ, and an alias of a third.
	Same(ctx context.Context, in Both) (Both, error)
	// Constrained has a parameter with a constraint, and a pointer to an instance.
	Constrained(ctx context.Context, in *Range[float64]) (*Range[int], error)
	// Tree is generic and holds itself.
	Tree(ctx context.Context, in Tree[Item]) (Tree[Item], error)
}

// Page is a page of a list.
type Page[T any] struct {
	// Items are what is on it.
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// Pair has two parameters.
type Pair[K comparable, V any] struct {
	Key   K `json:"key"`
	Value V `json:"value"`
}

// Item is an ordinary type.
type Item struct {
	Name string `json:"name"`
}

// Number is a constraint.
type Number interface{ ~int | ~float64 }

// Range is from a number to a number.
type Range[N Number] struct {
	From N  `json:"from"`
	To   *N `json:"to"` // null is without end
}

// Both has instances of each kind.
type Both struct {
	Texts   Page[string]         `json:"texts"`
	Numbers Page[int]            `json:"numbers"`
	Again   *Page[int]           `json:"again,omitempty"`
	Names   Names                `json:"names"`
	ByName  map[string]Page[int] `json:"by_name"`
	Set     Set[string]          `json:"set"`
	Local   Pair[string, struct {
		Deep bool `json:"deep"`
	}] `json:"local"`
}

// Names is an alias of an instance.
type Names = Pair[string, []string]

// Set is a generic map.
type Set[T comparable] map[T]bool

// Tree holds trees.
type Tree[T any] struct {
	Value    T         `json:"value"`
	Left     *Tree[T]  `json:"left,omitempty"`
	Children []Tree[T] `json:"children"`
}
