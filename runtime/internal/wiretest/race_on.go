//go:build race

package wiretest

// ScaleForRace returns raced, because the race detector makes everything many times slower.
func ScaleForRace(_, raced int) int { return raced }
