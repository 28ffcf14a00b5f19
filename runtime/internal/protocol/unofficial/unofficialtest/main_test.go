package unofficialtest

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// TestMain lets the tests reach servers in memory.
func TestMain(m *testing.M) { wiretest.Main(m) }
