package serve_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	"github.com/mcptaskgen/mcptaskgen/golden/kinds"
)

type kindsImpl struct{}

func (kindsImpl) Same(_ context.Context, in kinds.Fields) (kinds.Fields, error) { return in, nil }

func TestKinds(t *testing.T) {
	serve.Each(t, nil, nil, func(s *serve.Session) {
		client := kinds.NewKindsClient(s)
		text, x, one := "text", "x", 1
		date := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
		// The limits of its tags stand, so the zero value is not one of its own.
		least := kinds.Fields{Bool: pointer(false), Int: 1, Float: 0.5, String: "a", Enum: nil, Raw: json.RawMessage("null"), Tagged: kinds.Stamp{Time: date}}
		full := kinds.Fields{
			Bool: pointer(true), Int: 10, Uint8: 255, Float: 1.5, Quoted: -7, String: "b,c", Plain: `<&"\`, Bytes: []byte{0, 255},
			Array: [3]int{1, 2, 3}, Nested: [][]string{nil, {}, {"a"}}, Pointer: &text, Enum: &x, Left: &text,
			Map: map[string]*int{"b": &one}, Numbers: map[int]string{-1: "a", 2: "b"}, Unsigned: map[uint]any{1: "a"},
			Hosts: map[netip.Addr]kinds.On{netip.MustParseAddr("::1"): true}, Any: map[string]any{"a": []any{1.0, nil}},
			Raw: json.RawMessage(`{"a":[1]}`), Time: date, Took: time.Hour, Waited: -time.Nanosecond,
			Tagged: kinds.Stamp{Time: date}, Addr: netip.MustParseAddr("10.0.0.1"),
			URL: "https://example.com/a", On: true, Defaults: []int{1}, Nullable: "n",
		}
		serve.Echoes(s, "same", client.Same, full)
		left := full
		left.Map = map[string]*int{"a": nil, "b": &one} // arguments have no null
		serve.Returns(s, "same", client.Same, left, full)
		filled := least
		filled.Defaults = []int{1, 2}
		serve.Returns(s, "same", client.Same, least, filled)
	}, kinds.KindsTools(kindsImpl{}))
}
