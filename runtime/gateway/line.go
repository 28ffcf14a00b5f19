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

// mostNested bounds the levels of objects and arrays in a line: the SDK ends the session over a line with
// more, which it cannot read. Over HTTP it refuses the request alone.
const mostNested = 1000

// nested says how many levels valid JSON has.
func nested(data []byte) (most int) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = text(data, i) - 1
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}
