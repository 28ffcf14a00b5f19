//go:build long

package siege_test

import (
	"log"
	"os"
	"testing"
)

// Roles of the test binary if a test has started it: a server or a client.
const (
	asServer = "MCPTASK_SIEGE_SERVER"
	asClient = "MCPTASK_SIEGE_CLIENT"
)

// TestMain runs as the process under attack if a test has started this binary for it.
func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(asServer) != "":
		err = serve(os.Getenv(asServer))
	case os.Getenv(asClient) != "":
		err = call(os.Getenv(asClient))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		log.Fatal(err)
	}
}
