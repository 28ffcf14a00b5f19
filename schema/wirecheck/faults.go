package wirecheck

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// most is how many faults of one tap are told.
const maxFaults = 10

// faults are what a tap has found wrong. They are told when the test is over,
// and not where they are found: a handler may outlive the test's function.
type faults struct {
	mu   sync.Mutex
	seen []string
	more int
}

// reportAtEnd tells the faults at the end of a test. It has to be called before the
// server's own cleanup is registered, which then comes first.
func (f *faults) reportAtEnd(t testing.TB) {
	t.Cleanup(func() {
		if text := f.String(); text != "" {
			t.Errorf("what the server sent is not what the protocol says:\n%s", text)
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

// String is all faults so far, "" where there are none.
func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := strings.Join(f.seen, "\n")
	if f.more > 0 {
		text += fmt.Sprintf("\nand %d more", f.more)
	}
	return text
}
