//go:build long

package published

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// TestRecorded compares each list with that of the published server.
func TestRecorded(t *testing.T) {
	t.Setenv("FIRECRAWL_API_KEY", "fc-test") // it starts with any key
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			want, got := tools(t, read(t, s.path())), tools(t, record(t, generator.RecordConfig{Command: s.command(t)}))
			if s.name == "everything" && len(got) > len(want) {
				got = got[:len(want)] // it adds tools later
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the list is stale: record it again (-file +server):\n%s", d)
			}
		})
	}
}
