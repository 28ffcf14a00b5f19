//go:build !race

package gosdk_test

// fewer is how many of something there are: all, without the race detector.
func fewer(all, _ int) int { return all }
