package terminal

import (
	"io"
	"strings"
)

// leastLast is how many columns the last cell of a row needs beside the others.
const leastLast = 24

// PrintTable prints rows in columns. All rows have the same number of cells, at least one. No line ends in spaces. At a
// terminal, lines are cut to its width, and if the last cells have little room, each goes on a line of its own.
func PrintTable(w io.Writer, rows [][]string) error {
	var widths []int
	for _, cells := range rows {
		for i := range cells {
			cells[i] = Printable(cells[i], false)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cells[i]))
		}
	}
	needed := 0
	for i, width := range widths {
		if i == len(widths)-1 {
			width = min(width, leastLast)
		}
		needed += width + 2
	}
	window := windowWidth(w)
	for _, cells := range rows {
		line := ""
		for i, cell := range cells[:len(cells)-1] {
			line += cell + strings.Repeat(" ", widths[i]-columns(cell)+2)
		}
		last := cells[len(cells)-1]
		lines := []string{line + last}
		if window > 0 && needed-2 > window && line != "" {
			lines = []string{line, "  " + last}
		}
		for _, line := range lines {
			if line = strings.TrimRight(line, " "); line == "" {
				continue
			}
			if window > 0 {
				line = fit(line, window)
			}
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				return err
			}
		}
	}
	return nil
}
