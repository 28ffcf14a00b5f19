// Main is a program that declares its own service.
package main

import (
	"context"
	"fmt"
)

// Greeter greets.
//
//mcptask:service
type greeter interface {
	// Greet greets whoever calls.
	Greet(ctx context.Context) (string, error)
}

type polite struct{}

func (polite) Greet(context.Context) (string, error) { return "Good day", nil }

func main() { fmt.Println(greeterTools(polite{}).Service) }
