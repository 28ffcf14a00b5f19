//go:build race

package wiretest

// Fewer is how many of something there are under the race detector, which makes
// everything many times slower.
func Fewer(_, raced int) int { return raced }
