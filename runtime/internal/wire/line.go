package wire

import (
	"bufio"
	"bytes"
	"errors"
)

// ErrLongLine is the error of ReadLine for a line that is too long.
var ErrLongLine = errors.New("wire: the line is too long")

// ReadLine reads a line of at most limit bytes and skips the rest of a longer one.
func ReadLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || int64(len(line)+len(bytes.TrimSuffix(part, []byte("\n")))) > limit; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long: // a reader at its end says so again
			return nil, ErrLongLine
		}
		return line, err
	}
}
