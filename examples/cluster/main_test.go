package main

import (
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

func TestMain(m *testing.M) { peer.Main(m, main) }

// TestBadFlags checks that errors tell the way out.
func TestBadFlags(t *testing.T) {
	for want, m := range map[string]mode{
		"-replica and -call exclude each other": {replica: 1, url: "http://127.0.0.1/mcp"},
		"MCPTASK_POSTGRES":                      {replica: 1},
		"-postgres: ":                           {postgres: "host=" + t.TempDir() + " user=u"},
	} {
		var out strings.Builder
		if err := run(t.Context(), &out, m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", m, err, want)
		}
	}
}
