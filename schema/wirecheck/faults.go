package wirecheck

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// maxFaults is the maximum number of reported faults per tap.
const maxFaults = 10

// faults collects the faults that a tap found. They are reported at the end of the test, because a
// handler may outlive the test function.
type faults struct {
	mu   sync.Mutex
	seen []string
	more int
}

// reportAtEnd reports the faults at the end of a test. Call it before the server registers its
// cleanup, which then runs first.
func (f *faults) reportAtEnd(t testing.TB) {
	t.Cleanup(func() {
		if text := f.String(); text != "" {
			t.Errorf("the server's messages break the protocol:\n%s", text)
		}
	})
}

func (f *faults) add(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.seen) == maxFaults {
		f.more++
		return
	}
	f.seen = append(f.seen, fmt.Sprintf("%.2000s", err.Error()))
}

// String returns all faults so far, or "".
func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := strings.Join(f.seen, "\n")
	if f.more > 0 {
		text += fmt.Sprintf("\nand %d more", f.more)
	}
	return text
}
