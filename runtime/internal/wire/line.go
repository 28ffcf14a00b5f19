package wire

import (
	"bufio"
	"bytes"
	"errors"
)

// ErrLongLine is returned by ReadLine for a line that is too long.
var ErrLongLine = errors.New("wire: the line is too long")

// ReadLine reads a line of at most limit bytes. It skips the rest of a longer line, and returns its beginning with the
// error.
func ReadLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			long = int64(len(line)+len(bytes.TrimSuffix(part, []byte("\n")))) > limit
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long: // the next read reports an end again
			return line, ErrLongLine
		}
		return line, err
	}
}
