package jsonschema

import (
	"encoding/json"
	"fmt"
	"go/types"
	"math"
	"regexp"
	"strconv"
	"testing"
)

// TestKeyPatterns checks that the patterns of 8 and 16 bits admit exactly the keys of the type, as encoding/json writes
// them, and that all patterns admit the bounds of their type.
func TestKeyPatterns(t *testing.T) {
	for _, test := range []struct {
		kind    types.BasicKind
		low     int64
		high    uint64
		decoded any
	}{
		{types.Uint8, 0, math.MaxUint8, new(map[uint8]bool)},
		{types.Int8, math.MinInt8, math.MaxInt8, new(map[int8]bool)},
		{types.Uint16, 0, math.MaxUint16, new(map[uint16]bool)},
		{types.Int16, math.MinInt16, math.MaxInt16, new(map[int16]bool)},
		{types.Uint32, 0, math.MaxUint32, new(map[uint32]bool)},
		{types.Int32, math.MinInt32, math.MaxInt32, new(map[int32]bool)},
		{types.Uint64, 0, math.MaxUint64, new(map[uint64]bool)},
		{types.Int64, math.MinInt64, math.MaxInt64, new(map[int64]bool)},
		{types.Uint, 0, math.MaxUint, new(map[uint]bool)},
		{types.Int, math.MinInt, math.MaxInt, new(map[int]bool)},
	} {
		pattern := regexp.MustCompile(keyPatterns[test.kind])
		if err := checkPattern(pattern.String()); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		for _, key := range []string{"", "-", "-0", "+1", "00", "01", "-01", "1.0", "1e2", "1_0", " 1", "1 ", "99999999999999999999999"} {
			if pattern.MatchString(key) {
				t.Errorf("%s admits %q", pattern, key)
			}
		}
		check := func(key string, fits bool) {
			if pattern.MatchString(key) != fits {
				t.Fatalf("%s: %q fits: %v", pattern, key, !fits)
			}
			if err := json.Unmarshal(fmt.Appendf(nil, `{%q:true}`, key), test.decoded); fits && err != nil {
				t.Fatalf("%s admits %q: %v", pattern, key, err)
			}
		}
		check(strconv.FormatInt(test.low, 10), true)
		check(strconv.FormatUint(test.high, 10), true)
		for n := int64(-40_000); test.high <= math.MaxUint16 && n <= 100_000; n++ {
			check(strconv.FormatInt(n, 10), test.low <= n && n <= int64(test.high)) //nolint:gosec // at most 16 bits
		}
	}
}
