// Package app generates for the folders in it.
package app

//go:generate mcptaskgen --out generated.go ./stale
