package gateway

import (
	"bufio"
	"bytes"
	"errors"
)

var errLongLine = errors.New("the line is too long")

// readLine reads a line of at most limit bytes and skips the rest of a longer one.
func readLine(r *bufio.Reader, limit int64) ([]byte, error) {
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
			return nil, errLongLine
		}
		return line, err
	}
}
