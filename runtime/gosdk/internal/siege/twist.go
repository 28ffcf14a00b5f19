package siege

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Poison has numbers that are short to write and long to compute with.
var Poison = []string{
	"1e-999999", "1e999999", "1e-2147483648", "1E+2147483647", "1e99999999999999999999", "-1e-99999999", "0e999999999", "0.1e-400", "-0",
	"9007199254740993", "1.7976931348623157e309", "4.9e-324",
}

// List returns a JSON array of elements with about size bytes.
func List(element string, size int) string {
	n := max(size/(len(element)+1), 1)
	return "[" + strings.Repeat(element+",", n-1) + element + "]"
}

// Nest returns arrays nested to a depth.
func Nest(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// NestObject returns objects nested to a depth, each as the member "a".
func NestObject(depth int) string {
	return strings.Repeat(`{"a":`, depth) + "{}" + strings.Repeat("}", depth)
}

// Object returns an object with small members. Their names differ, unless same is true.
func Object(members int, same bool) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		name := "k"
		if !same {
			name += strconv.Itoa(i)
		}
		fmt.Fprintf(&b, "%q:1", name)
	}
	b.WriteByte('}')
	return b.String()
}

// Twists is how many kinds of values [Twist] knows. Its how counts them from 1.
const Twists = 12

// Twist replaces the scalar value at a place of a JSON text. how picks the new value: a number of
// [Poison], one with many digits, a deeply nested one, one with many members, or one with many that
// do not fit. The value has about size bytes. A how of 0 changes nothing. A fuzzer that flips bytes
// does not find such values.
func Twist(body []byte, how byte, place, size uint16) []byte {
	spans := scalars(body)
	if how == 0 || len(spans) == 0 {
		return body
	}
	n := int(size)
	values := [Twists]func() string{
		func() string { return Poison[n%len(Poison)] },
		func() string { return strings.Repeat("9", n+1) },
		func() string { return "0." + strings.Repeat("0", n) + "1" },
		func() string { return fmt.Sprintf("1e%d", n*n*100-1) },
		func() string { return fmt.Sprintf("1e-%d", n*n*100+1) },
		func() string { return Nest(n/2 + 1) },
		func() string { return NestObject(n / 6) },
		func() string { return List(`"x"`, n) },
		func() string { return List(Poison[n%len(Poison)], n) },
		func() string { return Object(n/8, false) },
		func() string { return Object(n/8, true) },
		func() string { return strconv.Quote(strings.Repeat("ab", n/2)) },
	}
	span := spans[int(place)%len(spans)]
	return bytes.Join([][]byte{body[:span[0]], []byte(values[int(how-1)%Twists]()), body[span[1]:]}, nil)
}

// scalars finds the numbers, strings and literals that are values. It accepts invalid JSON too.
func scalars(body []byte) (spans [][2]int) {
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			end := i + 1
			for end < len(body) && body[end] != '"' {
				if body[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(body))
			if rest := bytes.TrimLeft(body[end:], " \t\r\n"); len(rest) == 0 || rest[0] != ':' { // else it is a name
				spans = append(spans, [2]int{i, end})
			}
			i = end - 1
		case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			end := i
			for end < len(body) && (bytes.IndexByte([]byte("+-."), body[end]) >= 0 || body[end] >= '0' && body[end] <= '9' ||
				body[end]|0x20 >= 'a' && body[end]|0x20 <= 'z') {
				end++
			}
			spans = append(spans, [2]int{i, end})
			i = end - 1
		}
	}
	return spans
}
