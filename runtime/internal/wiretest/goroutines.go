package wiretest

import (
	"net/http"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
)

// Goroutines records the running goroutines, after it has closed idle connections. check waits
// until all later ones have ended. Goroutines must not run beside other tests.
func Goroutines(t *testing.T) (check func()) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	before := leak.Now()
	return func() {
		t.Helper()
		before.NoneLeft(t)
	}
}
