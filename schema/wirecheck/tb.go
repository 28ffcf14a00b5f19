package wirecheck

import (
	"net/http"
	"testing"
)

// TB wraps a test for mcptasktest.Connect, so that its server's messages are checked.
func TB(t testing.TB) testing.TB { return RevisionTB(t, Legacy) }

// RevisionTB is like TB for a connection in a revision.
func RevisionTB(t testing.TB, revision string) testing.TB { return tapped{t, revision} }

type tapped struct {
	testing.TB

	revision string
}

// WrapHandler is called by mcptasktest.Connect.
func (t tapped) WrapHandler(next http.Handler) http.Handler {
	t.Helper()
	return RevisionHandler(t.TB, t.revision, next)
}
