// Package scaffold tests the servers that mcptaskgen init writes, as their users run and call them. They are built with
// this checkout.
package scaffold
