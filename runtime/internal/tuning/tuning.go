// Package tuning changes what users cannot choose, for tests that kill processes: they need not wait
// for half a minute each time.
package tuning

import "time"

// Lease is how long a worker that has died keeps its tasks. 0 means the default. It is set before a
// server is made, or not at all.
var Lease time.Duration
