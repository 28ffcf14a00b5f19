//go:build long

package proof

import (
	"context"
	"errors"
	"net"
	"sync"
)

// cutter makes connections until it is cut. To the system behind an executor this looks as if the executor's process
// had ended.
type cutter struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

var errCut = errors.New("the process has ended")

// connect makes a connection.
func (c *cutter) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut && err == nil {
		_ = conn.Close() // as all others
		return nil, errCut
	}
	c.open = append(c.open, conn)
	return conn, err
}

// kill closes all connections, and refuses further ones.
func (c *cutter) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.open {
		if conn != nil {
			_ = conn.Close() // it may be closed
		}
	}
}
