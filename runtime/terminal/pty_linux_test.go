package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/ptytest"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
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

func (p pty) open(change func(*Options)) *Terminal {
	o := Options{In: p.Slave, Out: p.Slave, Getenv: func(string) string { return "" }, Interrupt: func() { p.t.Error("interrupted") }}
	if change != nil {
		change(&o)
	}
	terminal := New(o)
	p.t.Cleanup(terminal.Close)
	return terminal
}

// answer is what a question returned.
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
	terminal := p.open(nil)
	before, running := p.Mode(), leak.Now()
	working := mcptask.Snapshot{Status: mcptask.StatusWorking, CreatedAt: time.Now().Add(-65 * time.Second), Message: "frame 3"}
	working.Progress = mcptask.ProgressReport{Done: 1, Total: 4}
	terminal.Show("render", working)
	p.Sees("render ━━━━━━────────────────── 1/4  frame 3  1:0")
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
	running.NoneLeft(t)
}

func TestSeveral(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open(nil)
	for i, status := range []mcptask.Status{mcptask.StatusWorking, mcptask.StatusWorking, mcptask.StatusInputRequired, mcptask.StatusFailed, mcptask.StatusCompleted} {
		terminal.Show(fmt.Sprint("job", i), mcptask.Snapshot{Status: status})
	}
	p.Sees("2 working, 1 asks, 1 failed, 1 done  job4: done  0s")
	for i := range 3 {
		terminal.Show(fmt.Sprint("job", i), mcptask.Snapshot{Status: mcptask.StatusCompleted})
	}
	p.Misses("working")
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
	terminal := p.open(nil)
	before := p.Mode()
	terminal.Show("ship", mcptask.Snapshot{Status: mcptask.StatusInputRequired})
	p.Sees("? ship")
	answered := ask(t.Context(), terminal, "Ship it?\nIt is \x1b[31mheavy\x07.", shipment)
	p.Sees("? Ship it?\n  It is heavy.\n")
	p.Misses("? ship")
	p.Sees("  In metres.\n  Size (whole number from 1 to 9): ")
	p.Types("many\r")
	p.Sees("✗ \"many\" is not a whole number")
	p.Types("12\r")
	p.Sees("✗ got 12, want at most 9")
	p.Types("\r")
	p.Sees("✗ a value is needed")
	p.Types("7\r")
	p.Sees("  Size: 7\n  name (text, at least 3 characters): ")
	p.Types("ab\r")
	p.Sees("✗ got 2 characters, want at least 3")
	p.Types("xyz\x15größe 大小 \x17\x7f\x7fß\r")
	p.Sees("  name: größß\n  note (text, optional): ")
	p.Types("\r")
	p.Sees("  note: (empty)\n  speed (number, optional) [2.5]: ")
	p.Types("\r")
	p.Sees("  really (y/n, optional) [n]: ")
	p.Types("perhaps\r")
	p.Sees(`✗ "perhaps" is not y or n`)
	p.Types("Yes\r")
	p.returns(answered, `{"size":7,"name":"größß","speed":2.5,"really":true}`, nil)
	p.Sees("? ship")
	if p.Mode() != before {
		t.Error("the terminal is not restored")
	}
}

const colors = `{"type":"object","required":["color"],"properties":{
	"color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"},{"const":"b","title":"Blue"}]},
	"sizes":{"type":"array","items":{"type":"string","enum":["small","middle","large"]},"maxItems":2,"default":["small"]}}}`

func TestChoose(t *testing.T) {
	for _, c := range []struct{ name, color, sizes, content string }{
		{"arrows", "\x1b[B\x1b[B\x1b[A\r", "\x1b[B \r", `{"color":"g","sizes":["small","middle"]}`},
		{"another mode of arrows", "\x1bOA\r", "\x1bOB\x1bOA \r", `{"color":"b","sizes":[]}`},
		{"numbers", "3\r", "3, 1\r", `{"color":"b","sizes":["small","large"]}`},
		{"values", "g\r", "large middle\r", `{"color":"g","sizes":["middle","large"]}`},
		{"titles", "blu\r", "\r", `{"color":"b","sizes":["small"]}`},
		{"the first and a fault", "\r", "1 2 3\r2\r", `{"color":"r","sizes":["middle"]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPTY(t, 80)
			answered := ask(t.Context(), p.open(nil), "Which?", colors)
			p.Sees("  ❯ 1 Red\n    2 Green\n    3 Blue\n  color (1-3): ")
			p.Types(c.color)
			p.Sees("  sizes (space or numbers to choose, at most 2, optional) [small]: ")
			p.Sees("❯ 1 [x] small\n    2 [ ] middle\n")
			p.Types(c.sizes)
			p.returns(answered, c.content, nil)
			p.Misses("❯")
		})
	}
}

func TestSecret(t *testing.T) {
	p := openPTY(t, 80)
	answered := ask(t.Context(), p.open(nil), "Log in", `{"type":"object","required":["password","pin"],"properties":{
		"password":{"type":"string","format":"password","pattern":"[0-9]"},"pin":{"type":"string","writeOnly":true,"minLength":4}}}`)
	p.Sees("password (hidden): ")
	p.Types("hunter\r")
	p.Sees("✗ it does not fit")
	p.Types("hunter2 \r")
	p.Sees("  password: (hidden)\n")
	p.Sees("pin (hidden, at least 4 characters): ")
	p.Types("8\r98765\r")
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
		{"Esc twice", shipment, "\x1b\x1b", mcptask.ErrDismissed},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPTY(t, 80)
			before := p.Mode()
			answered := ask(t.Context(), p.open(nil), "Agreed?", c.schema)
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
	terminal := p.open(nil)
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
	terminal := p.open(func(o *Options) { o.Interrupt = func() { interrupted <- struct{}{} } })
	terminal.Show("ship", mcptask.Snapshot{Status: mcptask.StatusInputRequired})
	answered := ask(ctx, terminal, "Ship it?", shipment)
	p.Sees("Size (")
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

// TestCtrlCSignal leaves out Interrupt: the process gets the signal.
func TestCtrlCSignal(t *testing.T) {
	p := openPTY(t, 80)
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	answered := ask(ctx, p.open(func(o *Options) { o.Interrupt = nil }), "Ship it?", shipment)
	p.Sees("Size (")
	p.Types("\x03")
	p.returns(answered, "", mcptask.ErrDismissed)
}

// TestWithdrawn ends a question that another client has answered. The next question gets the keyboard.
func TestWithdrawn(t *testing.T) {
	p := openPTY(t, 80)
	before := p.Mode()
	terminal := p.open(nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	first := ask(ctx, terminal, "First?", shipment)
	p.Sees("Size (")
	second := ask(t.Context(), terminal, "Second?", shipment)
	p.Types("45")
	p.Sees(": 45")
	answeredElsewhere := errors.New("answered elsewhere")
	cancel(answeredElsewhere)
	p.returns(first, "", answeredElsewhere)
	p.Sees("The question is no longer asked.\n? Second?\n")
	p.Sees("Size (whole number from 1 to 9):")
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
	terminal := p.open(nil)
	for i := range 3 {
		p.Types(fmt.Sprintf("\r\ry\r%d", i))
		p.Sees(fmt.Sprintf("\ny\n%d", i))               // the terminal has them, and echoes
		p.Waits("the lines are not read", func() bool { // from the first question on
			terminal.keys.mu.Lock()
			defer terminal.keys.mu.Unlock()
			return i == 0 || string(terminal.keys.typed) == "\n\ny\n"
		})
		answered := ask(t.Context(), terminal, fmt.Sprintf("Agreed %d?", i), "")
		p.Sees(fmt.Sprintf("? Agreed %d?\n  Agree? (y/n): ", i))
		p.Types("n\r")
		p.returns(answered, "", mcptask.ErrDeclined)
	}
}

func TestNarrow(t *testing.T) {
	p := openPTY(t, 20)
	terminal := p.open(nil)
	working := mcptask.Snapshot{Status: mcptask.StatusWorking, Message: "大きな 動画 を 変換 して います"}
	working.Progress = mcptask.ProgressReport{Done: 1, Total: 4}
	terminal.Show("变换视频文件", working)
	p.Sees("变换视… 1/4  0s")
	terminal.Show("another", working)
	p.Sees("2 working  0s")
	answered := ask(t.Context(), terminal, "Which?", colors)
	p.Sees("❯ 1 Red\n")
	p.Sees("  color (1-3):\n  > ")
	p.Types("gree")
	p.Sees("  color (1-3):\n  > gree")
	p.Types("\r")
	p.Sees("  > ")
	p.Types("small, middle, large")
	p.Sees("  > … middle, large")
	p.Types("\x04\x1b")
	p.returns(answered, "", mcptask.ErrDismissed)
	if p.Wraps() > 0 {
		t.Errorf("%d lines wrap:\n%s", p.Wraps(), p.Look())
	}
}

func TestNoColor(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     map[string]string
		colored bool
		sees    string
	}{
		{"NO_COLOR", map[string]string{"NO_COLOR": "1"}, false, "━ 4/4"},
		{"CLICOLOR_FORCE", map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, true, "━ 4/4"},
		{"TERM=dumb", map[string]string{"TERM": "dumb"}, false, "render: 4/4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPTY(t, 80)
			terminal := p.open(func(o *Options) { o.Getenv = func(name string) string { return c.env[name] } })
			working := mcptask.Snapshot{Status: mcptask.StatusWorking, Progress: mcptask.ProgressReport{Done: 4, Total: 4}}
			terminal.Show("render", working)
			p.Sees(c.sees)
			answered := ask(t.Context(), terminal, "Which?", colors)
			p.Sees("1 Red\n")
			p.Sees("color (1-3): ")
			p.Types("x\r2\r\r")
			p.Sees("✗")
			p.returns(answered, `{"color":"g","sizes":["small"]}`, nil)
			if p.IsColored() != c.colored {
				t.Errorf("colored: %v", p.IsColored())
			}
			if c.env["TERM"] == "dumb" && strings.Contains(p.Raw(), "\x1b") {
				t.Errorf("sequences for a dumb terminal: %q", p.Raw())
			}
		})
	}
}

func TestOpenURL(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open(nil)
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
	answered := ask(t.Context(), p.open(nil), "Agreed?", "")
	p.Sees("Agree? (y/n): ")
	p.HangUp()
	p.returns(answered, "", mcptask.ErrCannotAsk)
}

// TestHostileServer shows and asks what a server would send to harm.
func TestHostileServer(t *testing.T) {
	p := openPTY(t, 80)
	terminal := p.open(nil)
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
	p.Types("\x1b[A\r")
	p.returns(answered, `{"a":"\u001b[2Jvalue 9999"}`, nil)
	if p.Wraps() > 200 {
		t.Errorf("%d lines wrap", p.Wraps())
	}
}

// TestAtOnce uses a terminal in many goroutines, and closes it meanwhile.
func TestAtOnce(t *testing.T) {
	p := openPTY(t, 40)
	before, running := p.Mode(), leak.Now()
	terminal := p.open(nil)
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
	running.AtMost(t, 1) // the keyboard
}
