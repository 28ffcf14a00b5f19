package generator_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestArrows checks that neither the generator nor its unit tests link the runtime, so that the
// runtime can be generated from scratch. Of the commands, only mcptaskgen does, because it calls servers.
func TestArrows(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-test", "./...", "../cmd/mcptaskvet/...", "../cmd/internal/bench", "../cmd/internal/scripts").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "github.com/mcptaskgen/mcptaskgen/runtime") {
			t.Errorf("the generator depends on %s", line)
		}
	}
}
