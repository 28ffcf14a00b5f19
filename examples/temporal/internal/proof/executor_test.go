//go:build long

package proof

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"github.com/mcptaskgen/mcptaskgen/examples/temporal/internal/temporalserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/executortest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal"
)

// inParallel runs a subtest beside others, since most of them wait for a lease or a heartbeat to end.
func inParallel(t *testing.T, name string, f func(*testing.T)) bool {
	return t.Run(name, func(t *testing.T) {
		t.Parallel()
		f(t)
	})
}

// TestTemporal tests the executor on Temporal.
func TestTemporal(t *testing.T) {
	t.Parallel()
	server := temporalserver.ForTest(t)
	const (
		slots = 8
		// On a busy machine, heartbeats come late. A run that is taken for lost begins again while it goes on, which
		// the tests refuse.
		heartbeat = 10 * time.Second
	)
	var lines sync.Map // of executors
	executortest.Run(t, executortest.Harness{
		New: func(t testing.TB, group string, run taskserver.RunFunc) (taskserver.Executor, error) {
			line := &cutter{dial: new(net.Dialer).DialContext}
			dial := func(ctx context.Context, address string) (net.Conn, error) { return line.connect(ctx, "tcp", address) }
			c, err := client.Dial(client.Options{
				HostPort: server.Address(), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
				ConnectionOptions: client.ConnectionOptions{
					DialOptions:          []grpc.DialOption{grpc.WithContextDialer(dial)},
					GetSystemInfoTimeout: time.Minute, // the default of 5 s is too short for a busy machine
				},
			})
			if err != nil {
				return nil, err
			}
			t.Cleanup(c.Close)
			x, err := temporal.NewExecutor(c, temporal.Options{
				TaskQueue: group, Concurrency: slots, Heartbeat: heartbeat, Patience: time.Second,
			})(run)
			lines.Store(x, line)
			return x, err
		},
		Kill: func(_ testing.TB, x taskserver.Executor) {
			line, _ := lines.Load(x)
			line.(*cutter).kill()
		},
		Slots:   slots,
		Subtest: inParallel,
	})
}
