package wiretest

import (
	"net/http"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
)

// Goroutines remembers what runs once connections that nobody uses are closed; check
// waits until nothing else is left. It must not run beside other tests.
func Goroutines(t *testing.T) (check func()) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	before := leak.Now()
	return func() {
		t.Helper()
		before.NoneLeft(t)
	}
}
