// Package app generates for the directories in it.
package app

//go:generate mcptaskgen --out generated.go ./stale
