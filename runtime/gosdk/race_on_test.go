//go:build race

package gosdk_test

// fewer is how many of something there are under the race detector, which makes
// everything many times slower.
func fewer(_, raced int) int { return raced }
