// Package memnet serves HTTP in memory, for tests. It works in bubbles of testing/synctest.
package memnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// maxBuffered bounds the unread bytes of a connection. A writer waits while the buffer is full, as
// on a socket.
const maxBuffered = 1 << 18

// listeners has the open listeners in memory, by address.
var (
	listeners sync.Map
	ports     atomic.Int64
)

// Listener accepts connections in memory. They work in a bubble of testing/synctest: a goroutine
// that waits for one is durably blocked.
type Listener struct {
	address address
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Listen opens a listener. Its address looks like a loopback address, with a port that no socket
// can have.
func Listen() *Listener {
	l := &Listener{
		address: address(fmt.Sprint("127.0.0.1:", 1<<16+ports.Add(1))),
		conns:   make(chan net.Conn), closed: make(chan struct{}),
	}
	listeners.Store(l.address.String(), l)
	return l
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() {
		listeners.Delete(l.address.String())
		close(l.closed)
	})
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.address }

// Dial connects to the listener in memory at an address. If there is none, it dials a socket.
func Dial(ctx context.Context, network, to string) (net.Conn, error) {
	found, ok := listeners.Load(to)
	if !ok {
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}
	l := found.(*Listener)
	client, server := newConns(address(fmt.Sprint("127.0.0.1:", 1<<16+ports.Add(1))), l.address)
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// NewTransport returns a transport for HTTP clients that dials with Dial.
func NewTransport() *http.Transport {
	return &http.Transport{DialContext: Dial, MaxIdleConnsPerHost: 32}
}

// address is the address of an end in memory.
type address string

// Network implements net.Addr.
func (address) Network() string { return "tcp" }

// String implements net.Addr.
func (a address) String() string { return string(a) }

// conn is one end of a connection in memory.
type conn struct {
	in, out     *flow
	here, there address
}

// newConns returns both ends of a connection.
func newConns(client, server address) (*conn, *conn) {
	up, down := newFlow(), newFlow()
	return &conn{in: down, out: up, here: client, there: server}, &conn{in: up, out: down, here: server, there: client}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) { return c.in.read(p) }

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.in.close(&c.in.unread)
	c.out.close(&c.out.ended)
	return nil
}

// CloseWrite ends the writes of this end. It can still read.
func (c *conn) CloseWrite() error {
	c.out.close(&c.out.ended)
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.here }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.there }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(at time.Time) error {
	c.in.readBy.set(c.in, at)
	c.out.writeBy.set(c.out, at)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(at time.Time) error {
	c.in.readBy.set(c.in, at)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(at time.Time) error {
	c.out.writeBy.set(c.out, at)
	return nil
}

// flow carries bytes from one end to the other.
type flow struct {
	mu              sync.Mutex
	changed         *sync.Cond
	data            []byte
	ended           bool // the writer has closed
	unread          bool // the reader has closed
	readBy, writeBy deadline
}

func newFlow() *flow {
	f := &flow{}
	f.changed = sync.NewCond(&f.mu)
	return f
}

func (f *flow) read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.unread:
			return 0, net.ErrClosed
		case f.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(f.data) > 0:
			n := copy(p, f.data)
			if f.data = f.data[n:]; len(f.data) == 0 {
				f.data = nil
			}
			f.changed.Broadcast()
			return n, nil
		case f.ended:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		f.changed.Wait()
	}
}

func (f *flow) write(p []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch room := maxBuffered - len(f.data); {
		case f.ended:
			return n, net.ErrClosed
		case f.writeBy.passed:
			return n, os.ErrDeadlineExceeded
		case f.unread:
			return n, io.ErrClosedPipe
		case n == len(p):
			return n, nil
		case room > 0:
			part := p[n:min(len(p), n+room)]
			f.data = append(f.data, part...)
			n += len(part)
			f.changed.Broadcast()
			continue
		}
		f.changed.Wait()
	}
}

func (f *flow) close(which *bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *which = true; f.unread {
		f.data = nil
	}
	f.readBy.stop()
	f.writeBy.stop()
	f.changed.Broadcast()
}

// deadline ends a wait on a flow. The flow's lock guards it.
type deadline struct {
	timer  *time.Timer
	passed bool
	n      int // counts the deadlines that were set
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *deadline) set(f *flow, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d.stop()
	d.n++
	n, left := d.n, time.Until(at)
	if d.passed = !at.IsZero() && left <= 0; !at.IsZero() && !d.passed {
		d.timer = time.AfterFunc(left, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if d.n == n {
				d.passed = true
				f.changed.Broadcast()
			}
		})
	}
	f.changed.Broadcast()
}

// OneOff is a transport that uses a new connection for each request. So no connection outlives a
// bubble.
var OneOff = &http.Transport{DialContext: Dial, DisableKeepAlives: true}
