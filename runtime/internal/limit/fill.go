package limit

import "math"

// Fill makes each field one that can be compared with: 0 becomes its default, a
// negative number, which is no bound, math.MaxInt.
func Fill(defaults map[*int]int) {
	for field, value := range defaults {
		switch {
		case *field == 0:
			*field = value
		case *field < 0:
			*field = math.MaxInt
		}
	}
}

// Default makes 0 and less the default, for what has to have a bound.
func Default[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Times multiplies a bound; no bound stays none.
func Times(bound, n int) int {
	if bound > math.MaxInt/n {
		return math.MaxInt
	}
	return bound * n
}
