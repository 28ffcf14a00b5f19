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
	// Price tells what a loaf costs.
	//
	//mcptask:tool readonly
	Price(ctx context.Context, in PriceInput) (PriceTag, error)

	// Bake bakes loaves. It takes minutes.
	Bake(ctx context.Context, task *mcptask.Task, in BakeInput) (Baked, error)

	// Order orders loaves, once a person has agreed to the price.
	Order(ctx context.Context, task *mcptask.Task, in OrderInput) (Ordered, error)

	// Advertise has the client's model write a line about a kind of bread.
	Advertise(ctx context.Context, task *mcptask.Task, in AdvertiseInput) (Advertisement, error)
}

// Agreement is what a person answers before an order.
//
//mcptask:input message="Do you agree to the price?"
type Agreement struct {
	// Agreed must be true to go on.
	Agreed bool `json:"agreed" jsonschema:"default=false"`
}

// PriceInput names a kind of bread.
type PriceInput struct {
	// Bread is the kind of bread.
	Bread string `json:"bread" jsonschema:"minLength=1"`
}

// PriceTag is a price.
type PriceTag struct {
	// Cents is the price of one loaf.
	Cents int `json:"cents"`
}

// BakeInput says what to bake.
type BakeInput struct {
	// Loaves is how many loaves to bake.
	Loaves int `json:"loaves" jsonschema:"minimum=1"`
	// Seconds is how long it takes. If it is missing, the server decides.
	Seconds float64 `json:"seconds,omitempty" jsonschema:"minimum=0"`
	// Quiet says that it reports no progress.
	Quiet bool `json:"quiet,omitempty"`
}

// Baked says what was baked.
type Baked struct {
	// Report has the number of loaves, in words.
	Report string `json:"report"`
}

// OrderInput says what to order.
type OrderInput struct {
	// Bread is the kind of bread.
	Bread string `json:"bread" jsonschema:"minLength=1"`
	// Loaves is how many loaves to order.
	Loaves int `json:"loaves" jsonschema:"minimum=1"`
}

// Ordered confirms an order.
type Ordered struct {
	// Confirmation has the order, in words.
	Confirmation string `json:"confirmation"`
}

// AdvertiseInput names a kind of bread.
type AdvertiseInput struct {
	// Bread is the kind of bread.
	Bread string `json:"bread" jsonschema:"minLength=1"`
}

// Advertisement praises a kind of bread.
type Advertisement struct {
	// Line is what the model wrote.
	Line string `json:"line"`
}
