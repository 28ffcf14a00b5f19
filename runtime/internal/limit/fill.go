package limit

import "math"

// Fill makes each field a bound to compare with: 0 becomes the default, and a negative number,
// which means no bound, becomes math.MaxInt.
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

// Default replaces 0 and less with the default. It is for fields that must have a bound.
func Default[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Times multiplies a bound. math.MaxInt stays, since it means no bound.
func Times(bound, n int) int {
	if bound > math.MaxInt/n {
		return math.MaxInt
	}
	return bound * n
}

// ShareOfAddress returns how much of a bound of all anonymous callers those of one network address may take: three
// quarters, so that there is room for another address.
func ShareOfAddress(bound int) int {
	if bound == math.MaxInt {
		return bound
	}
	return bound - bound/4
}
