//go:build long

package mcptasktest_test

import "testing"

// TestRequestsOfAThousand checks that a thousand calls share one watcher.
func TestRequestsOfAThousand(t *testing.T) { countRequests(t, 1000, 100) }
