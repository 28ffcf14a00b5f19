//go:build long && race

package siege_test

// raced is how many times as much memory a process takes under the race detector.
const raced = 10
