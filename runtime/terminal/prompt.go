package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	// maxText bounds the characters that a person types into one field.
	maxText = 64 << 10
	// maxRows bounds the rows of a list of choices. The list moves below them.
	maxRows = 10
	// maxLabelRows bounds the rows of a label.
	maxLabelRows = 3
)

// prompt is what a person edits at the moment: a line, and perhaps a list above it.
type prompt struct {
	label  string
	text   []rune
	hidden bool
	// choices are what the list offers. at is the one that Enter takes, or -1.
	choices []string
	at      int
	find    func(typed string) (at int, ok bool)
	// several says that a person checks any number of the choices.
	several bool
	checked map[int]bool
}

// outcome says how an edit ends.
type outcome int

const (
	editing outcome = iota
	entered
	declined
	dismissed
	interrupted
)

// press takes a key.
func (p *prompt) press(k key) outcome {
	switch k.code {
	case keyEnter:
		return entered
	case keyEscape:
		return dismissed
	case keyInterrupt:
		return interrupted
	case keyDecline:
		if len(p.text) == 0 {
			return declined
		}
	case keyUp:
		p.move(-1)
	case keyDown:
		p.move(1)
	case keyPageUp:
		p.move(-maxRows)
	case keyPageDown:
		p.move(maxRows)
	default:
		p.edit(k)
	}
	return editing
}

// edit takes a key that changes the text.
func (p *prompt) edit(k key) {
	switch k.code {
	case keyBackspace:
		p.text = p.text[:lastLetter(p.text)]
	case keyClearLine:
		p.text = nil
	case keyClearWord:
		end := len(p.text)
		for end > 0 && unicode.IsSpace(p.text[end-1]) {
			end--
		}
		for end > 0 && !unicode.IsSpace(p.text[end-1]) {
			end--
		}
		p.text = p.text[:end]
	case keyRune:
		switch {
		case p.several && k.r == ' ' && len(p.text) == 0:
			if p.at >= 0 {
				p.checked[p.at] = !p.checked[p.at]
			}
		case len(p.text) < maxText:
			p.text = append(p.text, k.r)
		}
	}
	if p.choices != nil && !p.several && len(p.text) > 0 {
		if at, ok := p.find(string(p.text)); ok {
			p.at = at
		}
	}
}

// lastLetter returns the index of the last letter, with the marks that belong to it.
func lastLetter(text []rune) int {
	end := len(text)
	for end > 0 {
		end--
		if runeColumns(text[end]) > 0 && text[end] != '\ufe0f' {
			break
		}
	}
	return end
}

// move moves in the list. At its ends it goes on at the other end.
func (p *prompt) move(by int) {
	if len(p.choices) == 0 {
		return
	}
	p.text = nil
	last := len(p.choices) - 1
	switch at := p.at + by; {
	case p.at < 0 && by < 0, at < 0 && p.at == 0, at > last && by > 1:
		p.at = last
	case at > last:
		p.at = 0
	default:
		p.at = max(at, 0)
	}
}

// pick finds the choice that a person typed: its text, its number, or a beginning that only one has.
func pick(choices []string, typed string) (at int, ok bool) {
	typed = strings.TrimSpace(typed)
	if typed == "" {
		return 0, false
	}
	if at := slices.Index(choices, typed); at >= 0 {
		return at, true
	}
	if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(choices) {
		return n - 1, true
	}
	isSame := func(choice string) bool { return strings.EqualFold(choice, typed) }
	if at := slices.IndexFunc(choices, isSame); at >= 0 {
		return at, true
	}
	isStart := func(choice string) bool {
		return len(choice) >= len(typed) && strings.EqualFold(choice[:len(typed)], typed)
	}
	at = slices.IndexFunc(choices, isStart)
	if at < 0 || slices.ContainsFunc(choices[at+1:], isStart) {
		return 0, false
	}
	return at, true
}

// draw returns the lines of the prompt in a window. The cursor is at the end of the last one. No line takes more
// than width columns.
func (p *prompt) draw(width, height int, look style) []string {
	lines := p.drawList(width, height, look)
	label := p.label
	if columns(label) > max(width-16, width/2) { // no room to type beside it
		rows := wrap(strings.TrimSpace(label), width-2)
		for _, row := range rows[:min(len(rows), maxLabelRows)] {
			lines = append(lines, look.bold(fit("  "+row, width)))
		}
		label = fit("  > ", width/2)
	}
	room := width - columns(label)
	return append(lines, look.bold(label)+p.drawText(room))
}

// drawText returns the end of what was typed.
func (p *prompt) drawText(room int) string {
	if p.hidden {
		return ""
	}
	// A row has not more letters than columns, and few marks.
	visible := p.text[max(0, len(p.text)-8*max(room, 0)):]
	text := Printable(string(visible), false)
	if len(visible) < len(p.text) {
		text = "…" + text
	}
	return fitEnd(text, room)
}

// drawList returns the part of the list around the choice that Enter takes.
func (p *prompt) drawList(width, height int, look style) []string {
	if len(p.choices) == 0 {
		return nil
	}
	rows := min(len(p.choices), max(min(maxRows, height-2-maxLabelRows), 2))
	first := min(max(p.at-rows/2, 0), len(p.choices)-rows)
	digits := len(strconv.Itoa(first + rows))
	var lines []string
	for i := first; i < first+rows; i++ {
		mark, box := "  ", ""
		if i == p.at {
			mark = "❯ "
		}
		if p.several {
			box = "[ ] "
			if p.checked[i] {
				box = "[x] "
			}
		}
		line := fit(fmt.Sprintf("  %s%*d %s%s", mark, digits, i+1, box, p.choices[i]), width)
		if i == p.at {
			line = look.accent(line)
		}
		lines = append(lines, line)
	}
	if rows < len(p.choices) {
		lines = append(lines, look.faint(fit(fmt.Sprintf("    %d choices in all", len(p.choices)), width)))
	}
	return lines
}
