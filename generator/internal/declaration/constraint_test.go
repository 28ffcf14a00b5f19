package declaration

import "testing"

func TestNameConstraint(t *testing.T) {
	for name, want := range map[string]string{
		"a.go": "", "a_linux.go": "linux", "a_arm64.go": "arm64", "a_windows_amd64.go": "windows && amd64", "linux.go": "", "a_b.go": "",
	} {
		if got := nameConstraint(name); got != want {
			t.Errorf("nameConstraint(%s) = %q, want %q", name, got, want)
		}
	}
}
