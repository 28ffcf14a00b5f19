package validate

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// decimal is a number exactly as its literal says: digits times ten to the exponent. Digits neither
// begin nor end with 0, and those of zero are "". Comparing two decimals costs no more than reading
// them. Fractions of big integers cost more.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal parses a JSON number that is within the bounds.
func parseDecimal(literal string) decimal {
	var v decimal
	if literal[0] == '-' {
		v.negative, literal = true, literal[1:]
	}
	if e := strings.IndexAny(literal, "eE"); e >= 0 {
		v.exponent, _ = strconv.Atoi(literal[e+1:])
		literal = literal[:e]
	}
	if whole, fraction, ok := strings.Cut(literal, "."); ok {
		v.exponent -= len(fraction)
		literal = whole + fraction
	}
	literal = strings.TrimLeft(literal, "0")
	v.digits = strings.TrimRight(literal, "0")
	if v.exponent += len(literal) - len(v.digits); v.digits == "" {
		return decimal{}
	}
	return v
}

// isInteger reports whether the number is whole, as 1.0 is.
func (v decimal) isInteger() bool { return v.digits == "" || v.exponent >= 0 }

// appendInteger appends a number that is whole, in plain digits.
func (v decimal) appendInteger(text []byte) []byte {
	if v.digits == "" {
		return append(text, '0')
	}
	if v.negative {
		text = append(text, '-')
	}
	text = append(text, v.digits...)
	for range v.exponent {
		text = append(text, '0')
	}
	return text
}

// String returns the number as JavaScript writes it.
func (v decimal) String() string {
	sign := ""
	if v.negative {
		sign = "-"
	}
	switch point := len(v.digits) + v.exponent; {
	case v.digits == "":
		return "0"
	case v.exponent >= 0 && point <= 21:
		return sign + v.digits + strings.Repeat("0", v.exponent)
	case 0 < point && point <= 21:
		return sign + v.digits[:point] + "." + v.digits[point:]
	case -6 < point && point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + v.digits
	case len(v.digits) == 1:
		return fmt.Sprintf("%s%se%+d", sign, v.digits, point-1)
	default:
		return fmt.Sprintf("%s%s.%se%+d", sign, v.digits[:1], v.digits[1:], point-1)
	}
}

// appendKey appends a key that exactly the equal numbers share.
func (v decimal) appendKey(key []byte) []byte {
	if v.negative {
		key = append(key, '-')
	}
	return strconv.AppendInt(append(append(key, v.digits...), 'e'), int64(v.exponent), 10)
}

// compare returns a negative number if v is less than w, and 0 if they are equal.
func (v decimal) compare(w decimal) int {
	switch a, b := v.sign(), w.sign(); {
	case a != b:
		return a - b
	case a < 0:
		return w.compareSize(v)
	}
	return v.compareSize(w)
}

func (v decimal) sign() int {
	switch {
	case v.digits == "":
		return 0
	case v.negative:
		return -1
	}
	return 1
}

// compareSize compares without the signs.
func (v decimal) compareSize(w decimal) int {
	if a, b := len(v.digits)+v.exponent, len(w.digits)+w.exponent; a != b {
		return a - b
	}
	return strings.Compare(v.digits, w.digits) // without trailing zeros, the longer one is greater
}

// toDecimal converts a number of a schema, which was a decimal there.
func toDecimal(r *big.Rat) decimal {
	places, _ := r.FloatPrec()
	return parseDecimal(r.FloatString(places))
}
