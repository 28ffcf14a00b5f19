package protocol

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// A handler may return null as its result, and a peer may send null as its _meta.
func TestWithMeta(t *testing.T) {
	for data, want := range map[string]string{
		`null`: `{"_meta":{"a":1}}`, `{"_meta":null}`: `{"_meta":{"a":1}}`, `{"b":2,"_meta":{"a":2,"c":3}}`: `{"b":2,"_meta":{"a":1,"c":3}}`,
	} {
		if got, err := WithMeta(json.RawMessage(data), map[string]any{"a": 1}); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", data, got, err)
		}
	}
	for _, bad := range []string{``, `[]`, `{"_meta":1}`} {
		if got, err := WithMeta(json.RawMessage(bad), map[string]any{"a": 1}); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

// A duration other than 0 stays above 0 and never becomes negative.
func TestMilliseconds(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, longest: int64(longest/time.Millisecond) + 1,
	} {
		if got := *RoundMilliseconds(d); got != want {
			t.Errorf("%d: %d, want %d", d, got, want)
		}
	}
}
