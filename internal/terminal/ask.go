package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// These constants bound the texts of a server.
const (
	maxMessage     = 4 << 10 // bytes
	maxMessageRows = 60
	maxURL         = 8 << 10 // bytes
	maxSchema      = 1000    // bytes
)

// Ask asks a form and returns its content. It checks each value as it is entered, and the whole at the end.
// Questions come one at a time, and the line is away meanwhile. Keys that were pressed before the question was on
// the screen do not count.
//
// The error is ErrDeclined if the person pressed Ctrl-D or said no, and ErrDismissed for Esc. If ctx ended, it is
// ErrDismissed and the cause. It is ErrCannotAsk if there is nobody to ask.
func (t *Terminal) Ask(ctx context.Context, q mcptask.Question) (content json.RawMessage, err error) {
	err = t.converse(ctx, q.Message, func(d dialog) (err error) {
		content, err = d.askForm(ctx, q.Schema)
		return err
	})
	if err != nil {
		return nil, err
	}
	return content, nil
}

// OpenURL shows a page that a task wants a person to open, with its host apart, and waits until the person says
// that it is done. It does not open the page. The errors are those of Ask.
func (t *Terminal) OpenURL(ctx context.Context, q mcptask.Question) error {
	return t.converse(ctx, q.Message, func(d dialog) error {
		t.say("  Host  "+t.look.bold(findHost(q.URL)), "  URL   "+Printable(shorten(q.URL, maxURL), false))
		t.say(d.indent("Open it in a browser if you trust the host.", t.look.faint)...)
		_, err := d.ReadPassword("  Enter when done, Ctrl-D to decline: ")
		return err
	})
}

// findHost returns the host of a web address, in ASCII: letters of other scripts may look like its letters.
func findHost(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return "none: this is no web address"
	}
	host := strings.Trim(strconv.QuoteToASCII(brief(parsed.Host, maxLabel)), `"`)
	if parsed.Scheme == "http" {
		host += " (not encrypted)"
	}
	return host
}

// dialog is a question while it is asked.
type dialog struct {
	*term.Terminal
	t     *Terminal
	width int
}

// converse waits for the turn of a question, takes the keyboard, and asks.
func (t *Terminal) converse(ctx context.Context, message string, ask func(dialog) error) error {
	if !t.CanAsk() {
		return mcptask.ErrCannotAsk
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", mcptask.ErrDismissed, context.Cause(ctx))
	case <-t.closed:
		return fmt.Errorf("%w: %w", mcptask.ErrDismissed, errClosed)
	}
	defer func() { <-t.turn }()
	d, err := t.enterRaw(ctx)
	if err != nil {
		return err
	}
	t.say(d.formatMessage(message)...)
	err = ask(d)
	line, err := t.explain(ctx, err)
	t.leaveQuestion(line)
	if errors.Is(err, errInterrupted) {
		t.interrupt()
		select {
		case <-ctx.Done():
		case <-t.closed:
		}
		return fmt.Errorf("%w: %w", mcptask.ErrDismissed, cmp.Or(context.Cause(ctx), errClosed))
	}
	return err
}

// enterRaw takes the keyboard, and makes it give each key at once.
func (t *Terminal) enterRaw(ctx context.Context) (dialog, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return dialog{}, fmt.Errorf("%w: %w", mcptask.ErrDismissed, context.Cause(ctx))
	case t.isClosed():
		return dialog{}, fmt.Errorf("%w: %w", mcptask.ErrDismissed, errClosed)
	}
	t.removeLine()
	t.keys.forget() // the beginning of a line, before the goroutine that reads gets it
	raw, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return dialog{}, fmt.Errorf("%w: %w", mcptask.ErrCannotAsk, err)
	}
	t.keys.forget()
	t.keys.start.Do(func() { go t.keys.read() })
	width, height := t.size()
	t.raw, t.question = raw, term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&typist{keyboard: t.keys, ctx: ctx, closed: t.closed}, t.out}, "")
	_ = t.question.SetSize(width, height) // it only draws
	t.question.SetBracketedPasteMode(true)
	return dialog{t.question, t, width}, nil
}

// leaveQuestion restores the terminal, and writes a line below the prompt if it is not "".
func (t *Terminal) leaveQuestion(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveRaw()
	if line != "" && !t.isClosed() {
		t.print("", line)
	}
}

// formatMessage returns the lines of a question's message.
func (d dialog) formatMessage(message string) []string {
	shown := strings.TrimSpace(Printable(shorten(message, maxMessage), true))
	if shown == "" {
		shown = "The task asks:"
	}
	lines := d.indent(shown, d.t.look.bold)
	lines[0] = d.t.look.warn("?") + lines[0][1:]
	if len(lines) > maxMessageRows || len(message) > maxMessage {
		lines = append(lines[:min(len(lines), maxMessageRows)], d.t.look.faint(fmt.Sprintf("  (The message has %d bytes. This is its beginning.)", len(message))))
	}
	return lines
}

// indent breaks a text into lines of the window.
func (d dialog) indent(text string, paint func(string) string) []string {
	lines := wrap(text, d.width-3)
	for i, line := range lines {
		lines[i] = "  " + paint(line)
	}
	return lines
}

// askValue asks until read takes the input. It shows the errors of read.
func (d dialog) askValue(prompt string, isHidden bool, read func(typed string) (json.RawMessage, error)) (json.RawMessage, error) {
	if columns(prompt) > max(d.width-16, d.width/2) { // no room to type beside it
		d.t.say(d.indent(strings.TrimSpace(prompt), d.t.look.bold)...)
		prompt = "  > "
	}
	prompt = d.t.look.bold(prompt)
	d.SetPrompt(prompt)
	for {
		var typed string
		var err error
		if isHidden {
			typed, err = d.ReadPassword(prompt)
		} else {
			typed, err = d.ReadLine()
		}
		if err != nil {
			return nil, err
		}
		value, err := read(typed)
		if err == nil {
			return value, nil
		}
		d.sayFault(err)
	}
}

// askConsent asks whether the person agrees: the schema wants no values.
func (d dialog) askConsent() (json.RawMessage, error) {
	value, err := d.askValue("  Agree? (y/n): ", false, readBoolean)
	if err == nil && string(value) == "false" {
		return nil, mcptask.ErrDeclined
	}
	return json.RawMessage("{}"), err
}

// askJSON asks for the whole content as JSON. It is for schemas that cannot be made into a form or are not safe to
// follow.
func (d dialog) askJSON(schema json.RawMessage) (json.RawMessage, error) {
	d.t.say(d.indent("No form can be made from the schema of the answer. Type it as one line of JSON. Ctrl-D declines.", d.t.look.warn)...)
	d.t.say(d.indent(brief(string(schema), maxSchema), d.t.look.faint)...)
	return d.askValue("  JSON: ", false, func(typed string) (json.RawMessage, error) {
		content := bytes.TrimSpace([]byte(typed))
		if _, err := form.DecodeMembers(content); err != nil || !json.Valid(content) {
			return nil, errors.New("it is not an object in JSON")
		}
		return content, nil
	})
}

// sayFault shows the fault of the input.
func (d dialog) sayFault(err error) {
	d.t.say(d.indent("✗ "+brief(err.Error(), maxFault), d.t.look.bad)...)
}

// explain turns the end of a dialog into an error of Ask, and returns the line that announces it,
// or "".
func (t *Terminal) explain(ctx context.Context, err error) (line string, _ error) {
	switch {
	case err == nil, errors.Is(err, mcptask.ErrDeclined):
		return "", err
	case errors.Is(err, errInterrupted):
		return "  ^C", err
	case errors.Is(err, io.EOF): // Ctrl-D
		return "  " + t.look.warn("declined"), mcptask.ErrDeclined
	case errors.Is(err, mcptask.ErrDismissed) && ctx.Err() == nil: // Esc
		return "  " + t.look.warn("dismissed"), err
	case errors.Is(err, errNoKeyboard):
		return "", fmt.Errorf("%w: %w", mcptask.ErrCannotAsk, err)
	case ctx.Err() != nil:
		line = "  " + t.look.faint("The question is no longer asked.")
	}
	return line, fmt.Errorf("%w: %w", mcptask.ErrDismissed, err)
}
