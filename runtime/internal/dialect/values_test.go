package dialect

import (
	"math"
	"testing"
	"time"
)

// No duration becomes none, or turns into a negative number.
func TestMilliseconds(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, longest: int64(longest/time.Millisecond) + 1,
	} {
		if got := *milliseconds(d); got != want {
			t.Errorf("%d: %d, want %d", d, got, want)
		}
	}
}
