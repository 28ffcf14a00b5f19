// Package tuning lets tests change constants that users cannot. A test that kills processes sets a short lease, so that
// it need not wait half a minute each time.
package tuning

import "time"

// Lease is how long a worker that has died keeps its tasks. 0 means the default. It is set before a
// server is made, or not at all.
var Lease time.Duration

// LoseRuns is the key of a function that a server attaches to its Backend:
//
//	func(taskID string, attempt int) (lost int)
//
// It ends the runs of handlers as if their process had died. See package mcptasktest, which calls it.
type LoseRuns struct{}
