package wiretest

import (
	"io"
	"sync/atomic"
	"testing"
)

// Torrent is a body that begins with a text and repeats another without end. It
// counts what is read of it, and fails the test rather than fill the memory.
type Torrent struct {
	T          testing.TB
	Rest, More string
	Taken      *atomic.Int64
}

func (f *Torrent) Read(p []byte) (int, error) {
	if f.Rest == "" {
		f.Rest = f.More
	}
	n := copy(p, f.Rest)
	f.Rest = f.Rest[n:]
	if f.Taken.Add(int64(n)) > 64<<20 && f.T != nil {
		f.T.Error("nothing bounds what is read")
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// Begins is the environment variable with what an endless server writes first.
const Begins = "MCPTASK_TEST_BEGINS"

// Continues is the one with what it writes from then on.
const Continues = "MCPTASK_TEST_CONTINUES"
