package terminal

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// These constants bound the texts of a server, in bytes.
const (
	maxName  = 100
	maxState = 500
)

// state is the state of a task as a person sees it.
type state struct {
	name        string
	status      mcptask.Status
	message     string
	done, total float64
	questions   int
	began       time.Time
}

// newState makes a state from a snapshot. The time of the creation is the server's. If its clock is ahead of this one,
// the time counts from now.
func newState(name string, s mcptask.Snapshot, now time.Time) state {
	shown := state{
		name: brief(name, maxName), status: s.Status, message: brief(cmp.Or(s.Message, s.Progress.Message), maxState),
		done: s.Progress.Done, total: s.Progress.Total, questions: len(s.Questions), began: s.CreatedAt,
	}
	if s.Status == mcptask.StatusInputRequired && len(s.Questions) > 0 {
		shown.message = brief(s.Questions[0].Message, maxState)
	}
	if s.Status == mcptask.StatusFailed && s.Error != nil {
		shown.message = brief(s.Error.Message, maxState)
	}
	if words := s.Progress.Message; words != "" && strings.HasPrefix(s.Message, words+" (") {
		shown.message = brief(words, maxState) // the numbers behind it are shown apart
	}
	if shown.began.IsZero() || shown.began.After(now) {
		shown.began = now
	}
	return shown
}

// String describes the state in one line, without the time.
func (s state) String() string {
	switch s.status {
	case mcptask.StatusWorking:
		return joinWords(s.name+":", cmp.Or(joinWords(s.count(), s.message), "working"))
	case mcptask.StatusInputRequired:
		asks := "asks:"
		if s.questions > 1 {
			asks = fmt.Sprintf("asks %d questions:", s.questions)
		}
		return strings.TrimSuffix(joinWords(s.name+":", asks, s.message), ":")
	case mcptask.StatusCompleted:
		return s.name + ": done"
	}
	return strings.TrimSuffix(joinWords(s.name+":", brief(string(s.status), maxName)+":", s.message), ":")
}

// count returns how far the task is. It returns "" if the task gives no numbers, or only one that its message is about.
func (s state) count() string {
	if _, ok := s.share(); ok {
		return formatNumber(s.done) + "/" + formatNumber(s.total)
	}
	if s.done > 0 && !math.IsInf(s.done, 0) && s.message == "" {
		return formatNumber(s.done)
	}
	return ""
}

// formatNumber returns a number with six digits, or all those before the point.
func formatNumber(f float64) string {
	if math.Abs(f) >= 1e6 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}

// share returns done of total, from 0 to 1. ok is false if the task gives no numbers.
func (s state) share() (share float64, ok bool) {
	if share = s.done / s.total; s.total > 0 && !math.IsNaN(share) && !math.IsInf(share, 0) && !math.IsInf(s.total, 0) {
		return min(max(share, 0), 1), true
	}
	return 0, false
}

// joinWords joins the words that are not empty.
func joinWords(words ...string) string {
	var b strings.Builder
	for _, word := range words {
		if word != "" && b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

// draw draws the state in one line of at most the given number of columns. If the window is narrow, the less important
// parts go first: the bar, then the message, then the time.
func (s state) draw(most int, now time.Time, look style) string {
	mark := look.accent(spinner(now))
	if s.status == mcptask.StatusInputRequired {
		mark = look.warn("?")
	}
	elapsed := formatElapsed(now.Sub(s.began))
	count := s.count()
	name := fit(s.name, max(most/3, 8))
	room := most - 2 // the mark
	if room < 1 {
		return fit(spinner(now), most)
	}
	name = fit(name, room)
	line := mark + " " + look.bold(name)
	room -= columns(name)
	// take reserves room for a part of the line and the blanks before it.
	take := func(part string, blanks int) string {
		if n := columns(part) + blanks; part != "" && n <= room {
			room -= n
			return strings.Repeat(" ", blanks) + part
		}
		return ""
	}
	count, elapsed = take(count, 1), take(elapsed, 2)
	bar := ""
	if share, ok := s.share(); ok {
		for _, cells := range []int{24, 12} {
			if room >= cells+1+min(columns(s.message), 24)+2 {
				bar = " " + drawBar(share, cells, look)
				room -= cells + 1
				break
			}
		}
	}
	message := ""
	if s.message != "" && room > 5 {
		message = "  " + fit(s.message, room-2)
	}
	return line + bar + count + message + look.faint(elapsed)
}

// drawBar draws a share of 1 with a number of cells.
func drawBar(share float64, cells int, look style) string {
	full := int(share * float64(cells))
	return look.good(strings.Repeat("━", full)) + look.faint(strings.Repeat("─", cells-full))
}

// spinner returns a character that changes with time and seems to turn.
func spinner(now time.Time) string {
	frames := []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	return frames[int(uint64(now.UnixMilli()/drawEvery.Milliseconds())%uint64(len(frames)))]
}

// formatElapsed formats a time for people, in seconds.
func formatElapsed(d time.Duration) string { return max(d, 0).Truncate(time.Second).String() }

// style colors texts, or leaves them alone.
type style struct{ colored bool }

func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) faint(text string) string  { return s.paint("2", text) }
func (s style) accent(text string) string { return s.paint("36", text) }
func (s style) good(text string) string   { return s.paint("32", text) }
func (s style) warn(text string) string   { return s.paint("33", text) }
func (s style) bad(text string) string    { return s.paint("31", text) }

func (s style) paint(code, text string) string {
	if !s.colored || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
