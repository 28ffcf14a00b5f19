//go:build long

package main

import "testing"

// TestLongScripts runs the scripts that build programs, and those that run the command twenty times.
func TestLongScripts(t *testing.T) { runScripts(t, "testdata/long") }
