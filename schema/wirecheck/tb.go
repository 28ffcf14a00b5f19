package wirecheck

import (
	"net/http"
	"testing"
)

// TB is a test for mcptasktest.Connect, whose server stands behind the tap.
func TB(t testing.TB) testing.TB { return RevisionTB(t, Legacy) }

// RevisionTB is TB for a connection in a revision.
func RevisionTB(t testing.TB, revision string) testing.TB { return tapped{t, revision} }

type tapped struct {
	testing.TB

	revision string
}

// WrapHandler is what mcptasktest.Connect looks for.
func (t tapped) WrapHandler(next http.Handler) http.Handler {
	t.Helper()
	return RevisionHandler(t.TB, t.revision, next)
}
