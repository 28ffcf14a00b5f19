//go:build long

package published

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// TestRecorded compares each list with what the published server lists.
func TestRecorded(t *testing.T) {
	t.Setenv("FIRECRAWL_API_KEY", "fc-test") // it starts with any key
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			got := tools(t, record(t, generator.RecordConfig{Command: s.command(t)}))
			for name, want := range tools(t, read(t, s.path())) {
				// everything lists more to clients that can do more, and at times later.
				if d := cmp.Diff(want, got[name]); d != "" {
					t.Errorf("%s is stale: record it again (-file +server):\n%s", name, d)
				}
			}
		})
	}
}
