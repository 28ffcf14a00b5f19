package nearest_test

import (
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/internal/nearest"
)

func TestName(t *testing.T) {
	keys := []string{"name", "title", "task", "ttl", "poll", "readOnly", strings.Repeat("x", 200)}
	for name, want := range map[string]string{
		"tll": "ttl", "tlt": "ttl", "titel": "title", "readonly": "readOnly", "READONLY": "readOnly", "nam": "name", "pol": "poll",
		"wibble": "", "": "", "xx": "", strings.Repeat("x", 199): "",
	} {
		if got := nearest.Name(name, keys, 2); got != want {
			t.Errorf("the nearest of %q is %q, want %q", name, got, want)
		}
	}
}
