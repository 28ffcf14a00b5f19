package wiretest

import (
	"io"
	"sync/atomic"
	"testing"
)

// Torrent is an endless body: it begins with Rest and repeats More. It counts what is read in
// Taken, and fails the test after 64 MiB.
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

// EnvTorrentBegin is the environment variable with the text that an endless server writes first.
const EnvTorrentBegin = "MCPTASK_TEST_BEGINS"

// EnvTorrentRest is the environment variable with the text that it repeats after that.
const EnvTorrentRest = "MCPTASK_TEST_CONTINUES"
