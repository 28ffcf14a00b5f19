package proof

import (
	"io"
	"log/slog"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/mcptaskgen/mcptaskgen/examples/temporal/internal/temporalserver"
)

// dial connects to the Temporal server that the test has.
func dial(t testing.TB) client.Client {
	t.Helper()
	server := temporalserver.ForTest(t)
	c, err := connect(t.Output(), server.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close) // before the server
	return c
}

// connect connects to a Temporal server. Errors of the SDK go to out.
func connect(out io.Writer, address string) (client.Client, error) {
	logger := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelError}))
	return client.Dial(client.Options{HostPort: address, Logger: log.NewStructuredLogger(logger)})
}
