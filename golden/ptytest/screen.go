package ptytest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// screen is a small model of a terminal: the sequences that package terminal writes, and lines that wrap.
type screen struct {
	width    int
	columns  func(rune) int // of a character
	rows     [][]string     // cells; the second cell of a wide character is ""
	row, col int
	hidden   bool // the cursor
	colored  bool // some text had a color
	wraps    int  // lines that did not fit
	rest     []byte
}

func (s *screen) Write(p []byte) (int, error) {
	data := append(s.rest, p...)
	s.rest = nil
	for len(data) > 0 {
		n := s.take(data)
		if n == 0 {
			s.rest = data
			break
		}
		data = data[n:]
	}
	return len(p), nil
}

// take takes one element from the beginning of the data. It returns 0 if the element is not
// complete.
func (s *screen) take(data []byte) int {
	switch data[0] {
	case '\r':
		s.col = 0
		return 1
	case '\n':
		s.down()
		return 1
	case '\a':
		return 1
	case '\x1b':
		if len(data) < 2 {
			return 0
		}
		for i := 2; i < len(data); i++ {
			if data[i] >= 0x40 && data[i] <= 0x7e {
				s.obey(string(data[2:i]), data[i])
				return i + 1
			}
		}
		return 0
	}
	if !utf8.FullRune(data) {
		return 0
	}
	r, n := utf8.DecodeRune(data)
	s.put(r)
	return n
}

func (s *screen) down() {
	if s.row++; s.row == len(s.rows) {
		s.rows = append(s.rows, nil)
	}
}

func (s *screen) put(r rune) {
	wide := s.columns(r)
	if wide == 0 && s.col > 0 {
		s.rows[s.row][s.col-1] += string(r)
		return
	}
	if s.col+wide > s.width {
		s.wraps++
		s.col = 0
		s.down()
	}
	cells := s.rows[s.row]
	for len(cells) < s.col+wide {
		cells = append(cells, " ")
	}
	cells[s.col] = string(r)
	if wide == 2 {
		cells[s.col+1] = ""
	}
	s.rows[s.row] = cells
	s.col += wide
}

func (s *screen) obey(parameters string, final byte) {
	switch {
	case final == 'K':
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
	case final == 'J':
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
		for i := s.row + 1; i < len(s.rows); i++ {
			s.rows[i] = nil
		}
	case final >= 'A' && final <= 'D':
		s.move(parameters, final)
	case final == 'm':
		s.colored = true
	case parameters == "?25":
		s.hidden = final == 'l'
	case parameters == "?2004":
	default:
		panic(fmt.Sprintf("unknown sequence %q%c", parameters, final))
	}
}

// move moves the cursor up, down, right or left.
func (s *screen) move(parameters string, final byte) {
	n := 1
	if parameters != "" {
		var err error
		if n, err = strconv.Atoi(parameters); err != nil {
			panic(fmt.Sprintf("cannot move by %q", parameters))
		}
	}
	switch final {
	case 'A':
		s.row -= n
	case 'B':
		s.row += n
	case 'C':
		s.col += n
	case 'D':
		s.col -= n
	}
	if s.row < 0 || s.row >= len(s.rows) || s.col < 0 || s.col > s.width {
		panic(fmt.Sprintf("cannot move by %q%c", parameters, final))
	}
}

// String returns the text on the screen.
func (s *screen) String() string {
	var b strings.Builder
	for _, cells := range s.rows {
		b.WriteString(strings.TrimRight(strings.Join(cells, ""), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
