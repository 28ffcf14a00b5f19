package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/ptytest"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// pty is a pseudo-terminal with a person at it.
type pty struct {
	*ptytest.PTY
	t *testing.T
}

// openPTY opens a pseudo-terminal with a window of the given width.
func openPTY(t *testing.T, width int) pty {
	t.Helper()
	return pty{ptytest.Open(t, width, runeColumns), t}
}

func (p pty) open() *Terminal {
	p.t.Setenv("TERM", "xterm")
	return p.openWith(func() { p.t.Error("interrupted") })
}

func (p pty) openWith(interrupt func()) *Terminal {
	terminal := New(p.Slave, p.Slave, interrupt)
	p.t.Cleanup(terminal.Close)
	return terminal
}

// answer is the result of a question.
type answer struct {
	content json.RawMessage
	err     error
}

// ask asks in another goroutine.
func ask(ctx context.Context, terminal *Terminal, message, schema string) <-chan answer {
	answered := make(chan answer, 1)
	go func() {
		content, err := terminal.Ask(ctx, mcptask.Question{Message: message, Schema: json.RawMessage(schema)})
		answered <- answer{content, err}
	}()
	return answered
}

// returns waits for the answer.
func (p pty) returns(answered <-chan answer, content string, err error) {
	p.t.Helper()
	select {
	case got := <-answered:
		if string(got.content) != content || !errors.Is(got.err, err) {
			p.t.Fatalf("got %s, %v, want %s, %v:\n%s", got.content, got.err, content, err, p.Look())
		}
	case <-time.After(ptytest.Patience):
		p.t.Fatalf("no answer:\n%s", p.Look())
	}
}

func TestBar(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open()
	before := p.Mode()
	working := mcptask.Snapshot{Status: mcptask.StatusWorking, CreatedAt: time.Now().Add(-65 * time.Second), Message: "frame 3"}
	working.Progress = mcptask.ProgressReport{Done: 1, Total: 4}
	terminal.Show("render", working)
	p.Sees("render ━━━━━━────────────────── 1/4  frame 3  1m")
	terminal.Printf("a line of %s\x1b[2J", "the program")
	p.Sees("a line of the program\n")
	p.Sees("render ━━━━━━")
	if !p.HidesCursor() {
		t.Error("the cursor is not hidden")
	}
	working.Progress.Done = 3
	terminal.Show("render", working)
	p.Sees("━━━━━━━━━━━━━━━━━━────── 3/4")
	working.Status = mcptask.StatusCompleted
	terminal.Show("render", working)
	p.Misses("render")
	terminal.Close()
	terminal.Close()
	p.Waits("the cursor stayed hidden", func() bool { return !p.HidesCursor() })
	if p.Look() != "a line of the program" || p.Wraps() > 0 || !p.IsColored() || p.Mode() != before {
		t.Errorf("left on the screen, %d wraps, colored %v:\n%s", p.Wraps(), p.IsColored(), p.Look())
	}
}

func TestNextTask(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open()
	terminal.Show("first", mcptask.Snapshot{Status: mcptask.StatusWorking})
	p.Sees(" first  0s")
	terminal.Show("first", mcptask.Snapshot{Status: mcptask.StatusCompleted})
	p.Misses("first")
	terminal.Show("next", mcptask.Snapshot{Status: mcptask.StatusWorking})
	p.Sees(" next  0s")
}

const shipment = `{"type":"object","required":["size","name"],"properties":{
	"size":{"type":"integer","title":"Size","description":"In metres.","minimum":1,"maximum":9},
	"name":{"type":"string","minLength":3},
	"note":{"type":"string"},
	"speed":{"type":"number","default":2.5},
	"really":{"type":"boolean","default":false}}}`

func TestWrongAnswerFirst(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open()
	before := p.Mode()
	terminal.Show("ship", mcptask.Snapshot{Status: mcptask.StatusInputRequired})
	p.Sees("? ship")
	answered := ask(t.Context(), terminal, "Ship it?\nIt is \x1b[31mheavy\x07.", shipment)
	p.Sees("? Ship it?\n  It is heavy.\n")
	p.Misses("? ship")
	p.Sees("  Size  field 1 of 5: In metres.\n  whole number from 1 to 9: ")
	p.Types("many\r")
	p.Sees("✗ \"many\" is not a whole number")
	p.Types("12\r")
	p.Sees("✗ got 12, want at most 9")
	p.Types("\r")
	p.Sees("✗ a value is needed")
	p.Types("7\r")
	p.Sees(": 7\n  name  field 2 of 5\n  text of at least 3 characters: ")
	p.Types("ab\r")
	p.Sees("✗ got 2 characters, want at least 3")
	p.Types("xyz\x15größe 大小 \x17\x7f\x7fß\r")
	p.Sees("  text, optional: ")
	p.Types("\r")
	p.Sees("  number, optional [2.5]: ")
	p.Types("\r")
	p.Sees("  y/n, optional [n]: ")
	p.Types("perhaps\r")
	p.Sees(`✗ "perhaps" is not y or n`)
	p.Types("Yes\r")
	p.Sees("  1  Size    7\n  2  name    größß\n  3  note    -\n  4  speed   2.5\n  5  really  y\n  Enter sends, a number changes a field: ")
	p.Types("6\r")
	p.Sees(`✗ "6" is not a number from 1 to 5`)
	p.Types("1\r10\r8\r")
	p.Sees("  whole number from 1 to 9 [7]: ")
	p.Sees("✗ got 10, want at most 9")
	p.Sees("  1  Size    8\n  2  name    größß\n")
	p.Types("5\r")
	p.Sees("  A space clears it.\n  y/n, optional [y]: ")
	p.Types("\r")
	p.Sees("  5  really  y\n")
	p.Types("4\r")
	p.Sees("  number, optional [2.5]: ")
	p.Types(" \r")
	p.Sees("  4  speed   -\n  5  really  y\n")
	p.Types("4\r")
	p.Sees("  number, optional: ")
	p.Types("\r")
	p.Sees("Enter sends, a number changes a field: ")
	p.Types("\r")
	p.returns(answered, `{"size":8,"name":"größß","really":true}`, nil)
	p.Sees("? ship")
	if p.Mode() != before {
		t.Error("the terminal is not restored")
	}
}

// TestTime asks for one time. Its zone is shown before it is sent.
func TestTime(t *testing.T) {
	p := openPTY(t, 80)
	answered := ask(t.Context(), p.open(), "When?", `{"type":"object","required":["at"],"properties":{"at":{"type":"string","format":"date-time"}}}`)
	p.Sees("  at (time such as 2026-01-31 15:04): ")
	p.Types("tomorrow\r")
	p.Sees(`✗ "tomorrow" is not a time such as 2026-01-31 15:04`)
	p.Types("2026-12-24 18:00\r")
	want := time.Date(2026, 12, 24, 18, 0, 0, 0, time.Local).Format(time.RFC3339)
	p.Sees("  1  at  " + want + "\n  Enter sends, a number changes a field: ")
	p.Types("1\r")
	p.Sees("  at (time such as 2026-01-31 15:04) [" + want + "]: ")
	p.Types("\r\r")
	p.returns(answered, fmt.Sprintf(`{"at":%q}`, want), nil)
}

const colors = `{"type":"object","required":["color"],"properties":{
	"color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"},{"const":"b","title":"Blue"}]},
	"sizes":{"type":"array","items":{"type":"string","enum":["small","middle","large"]},"maxItems":2,"default":["small"]}}}`

func TestChoose(t *testing.T) {
	for _, c := range []struct{ name, color, sizes, content string }{
		{"numbers", "3\r", "3, 1\r", `{"color":"b","sizes":["small","large"]}`},
		{"values", "g\r", "large,middle\r", `{"color":"g","sizes":["middle","large"]}`},
		{"titles", "blue\r", "\r", `{"color":"b","sizes":["small"]}`},
		{"none", "1\r", ",\r", `{"color":"r","sizes":[]}`},
		{"a fault", "4\r1\r", "1,2,3\r2\r", `{"color":"r","sizes":["middle"]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPTY(t, 80)
			answered := ask(t.Context(), p.open(), "Which?", colors)
			p.Sees("  color  field 1 of 2\n  1 Red\n  2 Green\n  3 Blue\n  1-3: ")
			p.Types(c.color)
			p.Sees("  1 small\n  2 middle\n  3 large\n")
			p.Sees("  numbers, with commas, at most 2, optional [small]: ")
			p.Types(c.sizes)
			p.Sees("Enter sends")
			p.Types("\r")
			p.returns(answered, c.content, nil)
		})
	}
}

func TestSecret(t *testing.T) {
	p := openPTY(t, 80)
	answered := ask(t.Context(), p.open(), "Log in", `{"type":"object","required":["password","pin"],"properties":{
		"password":{"type":"string","format":"password","pattern":"[0-9]"},"pin":{"type":"string","writeOnly":true,"minLength":4}}}`)
	p.Sees("  password  field 1 of 2\n  hidden: ")
	p.Types("hunter\r")
	p.Sees("✗ it does not fit")
	p.Types("hunter2 \r")
	p.Sees("  hidden, at least 4 characters: ")
	p.Types("8\r98765\r")
	p.Sees("  1  password  hidden\n  2  pin       hidden\n")
	p.Types("1\r")
	p.Sees("  hidden [hidden]: ")
	p.Types("\r\r")
	p.returns(answered, `{"password":"hunter2 ","pin":"98765"}`, nil)
	if all := p.Raw(); strings.Contains(all, "hunter") || strings.Contains(all, "9876") {
		t.Errorf("the secret is on the screen: %q", all)
	}
}

func TestRefuse(t *testing.T) {
	for _, c := range []struct {
		name, schema, keys string
		err                error
	}{
		{"Ctrl-D", colors, "\x04", mcptask.ErrDeclined},
		{"Ctrl-D in a text", shipment, "4\r\x04", mcptask.ErrDeclined},
		{"no", `{"type":"object","properties":{}}`, "what\rn\r", mcptask.ErrDeclined},
		{"Esc", shipment, "12\x1b", mcptask.ErrDismissed},
		{"Esc before sending", colors, "1\r\r\x1b", mcptask.ErrDismissed},
		{"Esc twice", shipment, "\x1b\x1b", mcptask.ErrDismissed},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPTY(t, 80)
			before := p.Mode()
			answered := ask(t.Context(), p.open(), "Agreed?", c.schema)
			p.Sees(":")
			p.Types(c.keys)
			p.returns(answered, "", c.err)
			if p.Mode() != before {
				t.Error("the terminal is not restored")
			}
		})
	}
}

func TestConsentAndJSON(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open()
	answered := ask(t.Context(), terminal, "Agreed?", "")
	p.Sees("Agree? (y/n): ")
	p.Types("y\r")
	p.returns(answered, `{}`, nil)
	answered = ask(t.Context(), terminal, "Where?", `{"type":"object","properties":{"place":{"type":"object"}}}`)
	p.Sees("JSON: ")
	p.Types("[1]\r")
	p.Sees("✗ it is not an object in JSON")
	p.Types("\x1b[200~{\"place\":\r\n{}}\r\x1b[201~\r")
	p.returns(answered, `{"place": {}}`, nil)
}

func TestCtrlC(t *testing.T) {
	p := openPTY(t, 80)
	before := p.Mode()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	interrupted := make(chan struct{}, 1)
	t.Setenv("TERM", "xterm")
	terminal := p.openWith(func() { interrupted <- struct{}{} })
	terminal.Show("ship", mcptask.Snapshot{Status: mcptask.StatusInputRequired})
	answered := ask(ctx, terminal, "Ship it?", shipment)
	p.Sees("  whole number from 1 to 9: ")
	p.Types("4\x03")
	select {
	case <-interrupted:
	case <-time.After(ptytest.Patience):
		t.Fatal("Interrupt was not called")
	}
	if p.Mode() != before {
		t.Error("the terminal is not restored")
	}
	p.Sees("^C")
	p.Sees("? ship")
	select {
	case got := <-answered:
		t.Fatalf("the question has ended before its context: %v", got)
	default:
	}
	cancel()
	p.returns(answered, "", mcptask.ErrDismissed)
}

// TestWithdrawn ends a question that another client has answered. The next question gets the keyboard.
func TestWithdrawn(t *testing.T) {
	p := openPTY(t, 80)
	before := p.Mode()
	terminal := p.open()
	ctx, cancel := context.WithCancelCause(t.Context())
	first := ask(ctx, terminal, "First?", shipment)
	p.Sees("  whole number from 1 to 9: ")
	second := ask(t.Context(), terminal, "Second?", shipment)
	p.Types("45")
	p.Sees(": 45")
	answeredElsewhere := errors.New("answered elsewhere")
	cancel(answeredElsewhere)
	p.returns(first, "", answeredElsewhere)
	p.Sees("The question is no longer asked.\n? Second?\n")
	p.Sees("? Second?\n  Ctrl-D declines, Esc dismisses.\n  Size  field 1 of 5: In metres.\n  whole number from 1 to 9:")
	p.Types("3\r\x1b")
	p.returns(second, "", mcptask.ErrDismissed)
	if p.Mode() != before {
		t.Error("the terminal is not restored")
	}

	third := ask(t.Context(), terminal, "Third?", shipment)
	p.Sees("? Third?")
	terminal.Close()
	p.returns(third, "", mcptask.ErrDismissed)
	if p.Mode() != before {
		t.Error("the terminal is not restored")
	}
	p.returns(ask(t.Context(), terminal, "Fourth?", shipment), "", mcptask.ErrCannotAsk)
}

// TestTypedBefore presses keys before there is a question. They must not answer it.
func TestTypedBefore(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open()
	for i := range 3 {
		p.Types(fmt.Sprintf("\r\ry\r%d", i))
		p.Sees(fmt.Sprintf("\ny\n%d", i))               // the terminal has them, and echoes
		p.Waits("the lines are not read", func() bool { // from the first question on
			return i == 0 || len(terminal.keys.typed) > 0
		})
		answered := ask(t.Context(), terminal, fmt.Sprintf("Agreed %d?", i), "")
		p.Sees(fmt.Sprintf("? Agreed %d?\n  Agree? (y/n): ", i))
		p.Types("n\r")
		p.returns(answered, "", mcptask.ErrDeclined)
	}
}

func TestNarrow(t *testing.T) {
	p := openPTY(t, 20)
	terminal := p.open()
	working := mcptask.Snapshot{Status: mcptask.StatusWorking, Message: "大きな 動画 を 変換 して います"}
	working.Progress = mcptask.ProgressReport{Done: 1, Total: 4}
	terminal.Show("变换视频文件", working)
	p.Sees("变换视… 1/4  0s")
	answered := ask(t.Context(), terminal, "Which?", colors)
	p.Sees("  1 Red\n")
	p.Sees("  1-3: ")
	p.Types("green\r")
	p.Sees("  3 large\n")
	p.Types("1\r")
	p.Sees("  1  color  Green\n  2  sizes  small\n  Enter sends, a\n")
	p.Types("\r")
	p.returns(answered, `{"color":"g","sizes":["small"]}`, nil)
	if p.Wraps() > 0 {
		t.Errorf("%d lines wrap:\n%s", p.Wraps(), p.Look())
	}
}

func TestNoColor(t *testing.T) {
	for _, c := range []struct {
		noColor, force, term string
		isColored            bool
		sees                 string
	}{
		{"", "", "xterm", true, "━ 4/4"},
		{"1", "", "xterm", false, "━ 4/4"},
		{"1", "1", "xterm", true, "━ 4/4"},
		{"1", "0", "xterm", false, "━ 4/4"},
		{"", "", "dumb", false, "render: 4/4"},
	} {
		t.Run(c.noColor+c.force+c.term, func(t *testing.T) {
			p := openPTY(t, 80)
			t.Setenv("NO_COLOR", c.noColor)
			t.Setenv("CLICOLOR_FORCE", c.force)
			t.Setenv("TERM", c.term)
			terminal := p.openWith(nil)
			working := mcptask.Snapshot{Status: mcptask.StatusWorking, Progress: mcptask.ProgressReport{Done: 4, Total: 4}}
			terminal.Show("render", working)
			p.Sees(c.sees)
			if c.term == "dumb" {
				p.returns(ask(t.Context(), terminal, "Which?", colors), "", mcptask.ErrCannotAsk)
				if strings.Contains(p.Raw(), "\x1b") {
					t.Errorf("sequences for a dumb terminal: %q", p.Raw())
				}
				return
			}
			answered := ask(t.Context(), terminal, "Which?", colors)
			p.Sees("  1-3: ")
			p.Types("x\r2\r\r\r")
			p.Sees("✗")
			p.returns(answered, `{"color":"g","sizes":["small"]}`, nil)
			if p.IsColored() != c.isColored {
				t.Errorf("colored: %v", p.IsColored())
			}
		})
	}
}

func TestOpenURL(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open()
	open := func(address string) <-chan answer {
		answered := make(chan answer, 1)
		go func() {
			answered <- answer{err: terminal.OpenURL(t.Context(), mcptask.Question{Message: "Log in.", URL: address})}
		}()
		return answered
	}
	answered := open("https://bank.example@evil.example/log\x1b[2Jin")
	p.Sees("? Log in.\n  Host  none: this is no web address\n")
	p.Types("\x04")
	p.returns(answered, "", mcptask.ErrDeclined)
	answered = open("https://bank.example@evil.example/login")
	p.Sees("  Host  evil.example\n  URL   https://bank.example@evil.example/login\n")
	p.Sees("Enter when done")
	p.Types("\r")
	p.returns(answered, "", nil)
}

// TestHangUp takes the terminal away while a question is asked.
func TestHangUp(t *testing.T) {
	p := openPTY(t, 80)
	answered := ask(t.Context(), p.open(), "Agreed?", "")
	p.Sees("Agree? (y/n): ")
	p.HangUp()
	p.returns(answered, "", mcptask.ErrCannotAsk)
}

// TestHostileServer shows texts and asks questions that a hostile server could send.
func TestHostileServer(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open()
	evil := strings.Repeat("\x1b]0;title\x07\x1b[2J\u202egpj.exe\r\n大", 100_000)
	terminal.Show(evil, mcptask.Snapshot{Status: mcptask.StatusWorking, Message: evil})
	p.Sees("gpj.exe")
	var values []string
	for i := range 10_000 {
		values = append(values, fmt.Sprintf(`"\u001b[2Jvalue %d"`, i))
	}
	answered := ask(t.Context(), terminal, evil, `{"type":"object","properties":{"a":{"type":"string","title":"\u001b[2J","enum":[`+strings.Join(values, ",")+`]}}}`)
	p.Sees("This is its beginning.")
	p.Sees("10000 choices in all")
	p.Types("10000\r")
	p.returns(answered, `{"a":"\u001b[2Jvalue 9999"}`, nil)
	if p.Wraps() > 200 {
		t.Errorf("%d lines wrap", p.Wraps())
	}
}

// TestAtOnce uses a terminal in many goroutines, and closes it meanwhile.
func TestAtOnce(t *testing.T) {
	p := openPTY(t, 40)
	before := p.Mode()
	terminal := p.open()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 50 {
				status := mcptask.StatusWorking
				if n%10 == 9 {
					status = mcptask.StatusCompleted
				}
				terminal.Show(fmt.Sprint("job", i), mcptask.Snapshot{Status: status, Message: fmt.Sprint(n)})
				terminal.Printf("line %d of %d", n, i)
			}
		})
		all.Go(func() {
			if _, err := terminal.Ask(t.Context(), mcptask.Question{Message: fmt.Sprint("Agreed ", i)}); !errors.Is(err, mcptask.ErrDismissed) && !errors.Is(err, mcptask.ErrCannotAsk) {
				t.Error(err)
			}
		})
	}
	p.Sees("Agree? (y/n): ")
	terminal.Close()
	all.Wait()
	if p.Mode() != before {
		t.Error("the terminal is not restored")
	}
}
