// Package recursive has tools whose types hold themselves.
package recursive

import "context"

//go:generate go tool mcptaskgen

// Recursive takes types that hold themselves and returns them.
//
//mcptask:service
type Recursive interface {
	// Grow takes a type that holds itself in every way.
	Grow(ctx context.Context, in Tree) (Tree, error)
	// Chain takes a type that leads to one that holds itself.
	Chain(ctx context.Context, in List) (List, error)
	// Ring takes types that hold each other.
	Ring(ctx context.Context, in Author) (Author, error)
}

// Tree holds trees.
type Tree struct {
	Name     string          `json:"name"`
	Left     *Tree           `json:"left,omitempty"`
	Right    *Tree           `json:"right"`
	Children []Tree          `json:"children"`
	Named    map[string]Tree `json:"named,omitempty"`
}

// List leads to types that hold themselves.
type List struct {
	Head *Item `json:"head"`
	Rose Rose  `json:"rose"`
	Maze Maze  `json:"maze"`
}

// Item is an item of a list.
type Item struct {
	Value int   `json:"value"`
	Next  *Item `json:"next,omitempty"`
}

// Rose is a tree of nothing else.
type Rose []Rose

// Maze is a map of mazes.
type Maze map[string]Maze

// Author has books.
type Author struct {
	Name  string  `json:"name"`
	Books []*Book `json:"books"`
}

// Book has authors.
type Book struct {
	Title   string   `json:"title"`
	Authors []Author `json:"authors"`
}
