package ptytest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Patience is how long a test waits for an event.
const Patience = time.Minute

// PTY is a pseudo-terminal with the screen that a person sees.
type PTY struct {
	t             testing.TB
	master, Slave *os.File

	mu     sync.Mutex
	screen screen
	raw    bytes.Buffer
	read   chan struct{} // closed when the master has ended
}

// Open opens a pseudo-terminal with a window of the given width. columns returns how many columns a character takes. It
// skips the test if the machine has no pseudo-terminals. It does not use creack/pty, whose master cannot be closed while it
// is read.
func Open(t testing.TB, width int, columns func(rune) int) *PTY {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		if os.Getenv("MCPTASK_REQUIRE") == "all" {
			t.Fatalf("no pseudo-terminal (mount devpts at /dev/pts): %v", err)
		}
		t.Skipf("no pseudo-terminal (mount devpts at /dev/pts): %v", err)
	}
	p := &PTY{t: t, master: master, screen: screen{width: width, columns: columns, rows: [][]string{nil}}, read: make(chan struct{})}
	connection, err := master.SyscallConn() // unlike Fd, it leaves the file in the poller
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	var failed error
	err = connection.Control(func(fd uintptr) {
		number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		failed = errors.Join(failed, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
	})
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	p.Slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(p.Slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)}); err != nil { //nolint:gosec // it fits
		t.Fatal(err)
	}
	go p.readScreen()
	t.Cleanup(func() {
		_ = p.Slave.Close()
		p.HangUp()
		<-p.read
	})
	return p
}

func (p *PTY) readScreen() {
	defer close(p.read)
	buffer := make([]byte, 4096)
	for {
		n, err := p.master.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.raw.Write(buffer[:n])
		_, _ = p.screen.Write(buffer[:n])
		p.mu.Unlock()
	}
}

// Attach gives a command the terminal, as a shell does in its foreground: as its input and outputs, if they are not
// set, and for its signals.
func (p *PTY) Attach(cmd *exec.Cmd) {
	if cmd.Stdin == nil {
		cmd.Stdin = p.Slave
	}
	if cmd.Stdout == nil {
		cmd.Stdout = p.Slave
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.Slave
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

// HangUp takes the terminal away.
func (p *PTY) HangUp() { _ = p.master.Close() }

// Look returns the text on the screen.
func (p *PTY) Look() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// Raw returns all that was written to the terminal.
func (p *PTY) Raw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()
}

// Wraps returns how many lines did not fit.
func (p *PTY) Wraps() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.wraps
}

// IsColored reports whether some text had a color.
func (p *PTY) IsColored() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.colored
}

// HidesCursor reports whether the cursor is hidden.
func (p *PTY) HidesCursor() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.hidden
}

// Sees waits until a text is on the screen.
func (p *PTY) Sees(text string) {
	p.t.Helper()
	text = strings.TrimRight(text, " ") // which the screen leaves out
	p.Waits("the screen never had "+text, func() bool { return strings.Contains(p.Look(), text) })
}

// Misses waits until a text has left the screen.
func (p *PTY) Misses(text string) {
	p.t.Helper()
	p.Waits("the screen kept "+text, func() bool { return !strings.Contains(p.Look(), text) })
}

// Waits waits until a condition holds.
func (p *PTY) Waits(otherwise string, until func() bool) {
	p.t.Helper()
	end := time.Now().Add(Patience)
	for !until() {
		if time.Now().After(end) {
			p.t.Fatalf("%s:\n%s", otherwise, p.Look())
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // only tests import this
	}
}

// Types presses keys.
func (p *PTY) Types(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// Mode returns the settings of the terminal.
func (p *PTY) Mode() unix.Termios {
	p.t.Helper()
	mode, err := unix.IoctlGetTermios(int(p.Slave.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *mode
}
