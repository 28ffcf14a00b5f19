//go:build !race

package wiretest

// Fewer is how many of something there are: all, without the race detector.
func Fewer(all, _ int) int { return all }
