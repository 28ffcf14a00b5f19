// Package other has types of the names of package kinds.
package other

import "encoding/json"

type Inner struct {
	Other bool            `json:"other"`
	Raw   json.RawMessage `json:"raw,omitempty"`
}

type Node struct {
	Next *Node `json:"next,omitempty"`
}

type Page[T any] struct {
	All []T `json:"all"`
}

type Text string

type hidden struct {
	Shown string `json:"shown"`
}

type Promotes struct {
	hidden

	Own int `json:"own"`
}

var _ = hidden{}
