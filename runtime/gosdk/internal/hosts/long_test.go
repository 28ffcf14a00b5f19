//go:build long

package hosts

import "testing"

func init() { oneIn = 1 }

// TestAllConnections runs the tests that take a host's connections, on each of them.
func TestAllConnections(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"TenMinutes": TestTenMinutes,
		"SlowUser":   TestSlowUser,
		"BlindUser":  TestBlindUser,
		"Survey":     TestSurvey,
		"KnownHosts": TestKnownHosts,
	} {
		t.Run(name, test)
	}
}
