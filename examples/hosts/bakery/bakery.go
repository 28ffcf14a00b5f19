// Package bakery declares the tools of a bakery: one that answers at once, one that takes minutes, one that asks a
// person, and one that asks the client's model.
package bakery

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Bakery sells bread.
//
//mcptask:service fallback=tools poll=500ms onlost=restart
type Bakery interface {
	// Price returns the price of a loaf of one kind of bread.
	//
	//mcptask:tool readonly
	Price(ctx context.Context, in PriceInput) (PriceTag, error)

	// Bake bakes loaves of bread. It takes minutes.
	Bake(ctx context.Context, task *mcptask.Task, in BakeInput) (Baked, error)

	// Order orders loaves of one kind of bread. It asks a person to agree to the price first.
	Order(ctx context.Context, task *mcptask.Task, in OrderInput) (Ordered, error)

	// Advertise asks the client's model for a line that praises one kind of bread, and returns it.
	Advertise(ctx context.Context, task *mcptask.Task, in AdvertiseInput) (Advertisement, error)
}

// Agreement is what a person answers before an order.
//
//mcptask:input message="Do you agree to the price?"
type Agreement struct {
	// Agreed says whether to order at this price.
	Agreed bool `json:"agreed" jsonschema:"default=false"`
}

// PriceInput names a kind of bread.
type PriceInput struct {
	// Bread is the kind of bread, such as rye.
	Bread string `json:"bread" jsonschema:"minLength=1"`
}

// PriceTag is a price.
type PriceTag struct {
	// Cents is the price of one loaf in euro cents.
	Cents int `json:"cents"`
}

// BakeInput says what to bake.
type BakeInput struct {
	// Loaves is how many loaves to bake.
	Loaves int `json:"loaves" jsonschema:"minimum=1"`
	// Seconds is how many seconds the loaves bake. If it is left out, the server decides.
	Seconds float64 `json:"seconds,omitempty" jsonschema:"minimum=0"`
	// Quiet says whether to bake without reports of progress.
	Quiet bool `json:"quiet,omitempty"`
}

// Baked says what was baked.
type Baked struct {
	// Report is a sentence that says how many loaves were baked.
	Report string `json:"report"`
}

// OrderInput says what to order.
type OrderInput struct {
	// Bread is the kind of bread, such as rye.
	Bread string `json:"bread" jsonschema:"minLength=1"`
	// Loaves is how many loaves to order.
	Loaves int `json:"loaves" jsonschema:"minimum=1"`
}

// Ordered confirms an order.
type Ordered struct {
	// Confirmation is a sentence that confirms the order.
	Confirmation string `json:"confirmation"`
}

// AdvertiseInput names a kind of bread.
type AdvertiseInput struct {
	// Bread is the kind of bread, such as rye.
	Bread string `json:"bread" jsonschema:"minLength=1"`
}

// Advertisement praises a kind of bread.
type Advertisement struct {
	// Line is the line that the model wrote.
	Line string `json:"line"`
}
