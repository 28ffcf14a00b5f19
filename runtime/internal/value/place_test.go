package value

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

// nested has places that fail by themselves, at any depth.
type nested struct {
	Addr  netip.Addr `json:"addr,omitzero"`
	Note  string     `json:"note,omitempty"`
	Inner *nested    `json:"inner,omitempty"`
	List  []nested   `json:"list,omitempty"`
}

func TestPlace(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{`{"addr":"bad"}`, "addr"},
		{`{"list":[{},{"inner":{"addr":"bad"}}]}`, "list.1.inner.addr"},
		{strings.Repeat(`{"inner":`, 20) + `{"addr":"bad"}` + strings.Repeat("}", 20), strings.Repeat("inner.", 20) + "addr"},
		{`{"list":[` + strings.Repeat(`{"note":"ok"},`, 500) + `{"addr":"bad"}]}`, "list.500.addr"},
	} {
		if _, err := Decode[nested](json.RawMessage(c.value)); err == nil || !strings.HasPrefix(err.Error(), c.want+": ") {
			t.Errorf("%.100s: got %v, want the place %s", c.value, err, c.want)
		}
	}
}

// TestPlaceOfHostileValues checks that the search decodes a bounded multiple of a value, and still finds its way a little.
func TestPlaceOfHostileValues(t *testing.T) {
	const size = 1 << 19
	long, many := strings.Repeat("x", size), strings.Repeat("{},", size/3)
	deep := func(inner string) string { return strings.Repeat(`{"inner":`, 100) + inner + strings.Repeat("}", 100) }
	for _, c := range []struct{ value, want string }{
		{deep(`{"addr":"bad","note":"` + long + `"}`), "inner"},
		{deep(`{"addr":"bad","inner":{"note":"` + long + `"}}`), "inner"},
		{deep(`{"list":[` + many + `{"addr":"bad"}]}`), "inner"},
		{`{"list":[` + many + `{"addr":"bad"}]}`, "list"},
	} {
		decoded, calls := 0, 0
		place := findPlace(json.RawMessage(c.value), func(part json.RawMessage) bool {
			decoded += len(part)
			calls++
			_, err := decode[nested](part)
			return err != nil
		})
		if most := 6 * len(c.value); decoded > most || calls > most/searchPerPart {
			t.Errorf("%.30s: the search decodes %d bytes in %d parts of a value of %d", c.value, decoded, calls, len(c.value))
		}
		if !strings.HasPrefix(place, c.want) {
			t.Errorf("%.30s: got the place %.50q, want one that begins with %s", c.value, place, c.want)
		}
	}
}
