package jsonschema

import "testing"

func TestStandardLibraryFiles(t *testing.T) {
	for name, want := range map[string]bool{
		"time/time.go":                     true, // with -trimpath
		"$GOROOT/src/time/time.go":         true,
		findGOROOT() + "/src/time/time.go": true,
		"hello/types/types.go":             false,
		"example.com/types/types.go":       false,
		"/home/user/hello/types.go":        false,
	} {
		if got := isStandardLibrary(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
