package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/form"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// maxSchema bounds the bytes of a schema that is shown.
const maxSchema = 1000

// Ask asks a form and returns its content. It checks each value as it is entered, and the whole at the end.
// Questions come one at a time, and the line is away meanwhile. Keys that were pressed before the question was on
// the screen do not count.
//
// The error is ErrDeclined if the person pressed Ctrl-D or said no, and ErrDismissed for Esc. If ctx ended, it is
// ErrDismissed and the cause. It is ErrCannotAsk if there is nobody to ask.
func (t *Terminal) Ask(ctx context.Context, q mcptask.Question) (json.RawMessage, error) {
	leave, err := t.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	t.say(t.formatMessage(q.Message)...)
	content, err := t.askForm(ctx, q.Schema)
	if err != nil {
		return nil, t.explain(ctx, err)
	}
	return content, nil
}

// OpenURL shows a page that a task wants a person to open, with its host apart, and waits until the person says
// that it is done. It does not open the page. The errors are those of Ask.
func (t *Terminal) OpenURL(ctx context.Context, q mcptask.Question) error {
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	t.say(t.formatMessage(q.Message)...)
	t.say("  Host  "+t.look.bold(findHost(q.URL)), "  URL   "+Printable(text.Shorten(q.URL, maxURL), false))
	t.tell("Open it in a browser if you trust the host.", t.look.faint)
	p := &prompt{label: "  Enter when done, Ctrl-D to decline: ", hidden: true}
	if err := t.edit(ctx, p); err != nil {
		return t.explain(ctx, err)
	}
	t.replacePrompt(nil, "  "+t.look.good("done"))
	return nil
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

// enter waits for the turn of a question and takes the keyboard.
func (t *Terminal) enter(ctx context.Context) (leave func(), err error) {
	if !t.CanAsk() {
		return nil, mcptask.ErrCannotAsk
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", mcptask.ErrDismissed, context.Cause(ctx))
	case <-t.closed:
		return nil, fmt.Errorf("%w: %w", mcptask.ErrDismissed, errClosed)
	}
	if err := t.takeKeyboard(ctx); err != nil {
		<-t.turn
		return nil, err
	}
	return func() {
		t.giveKeyboard()
		<-t.turn
	}, nil
}

func (t *Terminal) takeKeyboard(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", mcptask.ErrDismissed, context.Cause(ctx))
	case t.isClosed():
		return fmt.Errorf("%w: %w", mcptask.ErrDismissed, errClosed)
	}
	t.removeLine()
	t.keys.forget() // the beginning of a line, before the goroutine that reads gets it
	if err := t.enterRaw(); err != nil {
		return fmt.Errorf("%w: %w", mcptask.ErrCannotAsk, err)
	}
	t.asking = true
	t.keys.begin()
	return nil
}

func (t *Terminal) giveKeyboard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removePrompt()
	t.leaveRaw()
	t.asking = false
}

// formatMessage returns the lines of a question's message.
func (t *Terminal) formatMessage(message string) []string {
	shown := strings.TrimSpace(Printable(text.Shorten(message, maxMessage), true))
	if shown == "" {
		shown = "The task asks:"
	}
	rows := wrap(shown, t.width()-2)
	cut := len(message) > maxMessage
	if len(rows) > maxMessageRows {
		rows, cut = rows[:maxMessageRows], true
	}
	var lines []string
	for i, row := range rows {
		mark := "  "
		if i == 0 {
			mark = t.look.warn("?") + " "
		}
		lines = append(lines, mark+t.look.bold(row))
	}
	if cut {
		lines = append(lines, t.look.faint(fmt.Sprintf("  (The message has %d bytes. This is its beginning.)", len(message))))
	}
	return lines
}

// say writes lines above the prompt.
func (t *Terminal) say(lines ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isClosed() {
		t.print(lines)
	}
}

// tell writes a text above the prompt, as many lines as it takes.
func (t *Terminal) tell(text string, paint func(string) string) {
	t.say(t.indent(text, paint)...)
}

// indent breaks a text into lines of the window.
func (t *Terminal) indent(text string, paint func(string) string) []string {
	lines := wrap(text, t.width()-2)
	for i, line := range lines {
		lines[i] = "  " + paint(line)
	}
	return lines
}

// width returns the columns that a line may take.
func (t *Terminal) width() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	width, _ := t.size()
	return width
}

// askForm asks what a schema wants.
func (t *Terminal) askForm(ctx context.Context, schema json.RawMessage) (json.RawMessage, error) {
	made, err := newFields(schema)
	switch {
	case err != nil:
		return t.askJSON(ctx, schema)
	case len(made.list) == 0:
		return t.askConsent(ctx)
	}
	t.tell("Ctrl-D declines, Esc dismisses.", t.look.faint)
	values := map[string]json.RawMessage{}
	for again := made.list; len(again) > 0; {
		for _, f := range again {
			if err := t.askField(ctx, f, values); err != nil {
				return nil, err
			}
		}
		if again, err = made.check(ctx, values); err != nil {
			t.say(t.formatFault(err)...)
		}
	}
	return made.encode(values), nil
}

// askField asks for one value until it fits. The value is nil if the field stays empty.
func (t *Terminal) askField(ctx context.Context, f field, values map[string]json.RawMessage) error {
	if description := brief(f.Description, maxDescription); description != "" {
		t.tell(description, t.look.faint)
	}
	p := f.newPrompt()
	t.listChoices(p)
	value, err := t.askValue(ctx, p, func() (json.RawMessage, error) {
		value, err := f.read(p)
		if err == nil && value != nil {
			err = f.check(ctx, value)
		}
		return value, err
	})
	if err != nil {
		return err
	}
	values[f.Name] = value
	t.replacePrompt(nil, t.formatEntered(f.label()+": ", f.showEntered(value)))
	return nil
}

// askValue lets the person edit a prompt until read takes what was entered. The errors of read are shown, those of the edit
// returned.
func (t *Terminal) askValue(ctx context.Context, p *prompt, read func() (json.RawMessage, error)) (json.RawMessage, error) {
	for {
		if err := t.edit(ctx, p); err != nil {
			return nil, err
		}
		value, err := read()
		if err == nil {
			return value, nil
		}
		t.replacePrompt(p, t.formatFault(err)...)
		p.text = nil
	}
}

// listChoices writes the choices if the terminal cannot move in a list.
func (t *Terminal) listChoices(p *prompt) {
	if t.isLive {
		return
	}
	for i, label := range p.choices {
		if i == maxMessageRows {
			t.say(fmt.Sprintf("  … %d choices in all", len(p.choices)))
			return
		}
		t.say(fmt.Sprintf("  %d %s", i+1, label))
	}
}

// askConsent asks whether the person agrees: the schema wants no values.
func (t *Terminal) askConsent(ctx context.Context) (json.RawMessage, error) {
	p := &prompt{label: "  Agree? (y/n): "}
	value, err := t.askValue(ctx, p, func() (json.RawMessage, error) { return readBoolean(string(p.text)) })
	if err != nil {
		return nil, err
	}
	t.replacePrompt(nil, t.formatEntered("Agree? ", showAnswer(value)))
	if string(value) == "false" {
		return nil, mcptask.ErrDeclined
	}
	return json.RawMessage("{}"), nil
}

// askJSON asks for the whole content as JSON: no form can be made from the schema, nor is it safe to follow.
func (t *Terminal) askJSON(ctx context.Context, schema json.RawMessage) (json.RawMessage, error) {
	t.tell("No form can be made from the schema of the answer. Type it as one line of JSON. Ctrl-D declines.", t.look.warn)
	t.tell(brief(string(schema), maxSchema), t.look.faint)
	p := &prompt{label: "  JSON: "}
	typed, err := t.askValue(ctx, p, func() (json.RawMessage, error) {
		typed := bytes.TrimSpace([]byte(string(p.text)))
		if _, err := form.DecodeMembers(typed); err != nil || !json.Valid(typed) {
			return nil, errors.New("it is not an object in JSON")
		}
		return typed, nil
	})
	if err == nil {
		t.replacePrompt(nil, t.formatEntered("JSON: ", brief(string(typed), maxSchema)))
	}
	return typed, err
}

func (t *Terminal) formatFault(err error) []string {
	return t.indent("✗ "+brief(err.Error(), maxFault), t.look.bad)
}

// formatEntered returns the line that stays of a field.
func (t *Terminal) formatEntered(label, value string) string {
	room := t.width() - 2
	label = fit(label, room)
	return "  " + t.look.bold(label) + fit(value, room-columns(label))
}

// edit lets the person edit a prompt until Enter. It returns ErrDeclined, ErrDismissed, or why the keyboard gave
// nothing.
func (t *Terminal) edit(ctx context.Context, p *prompt) error {
	t.draw(p)
	for {
		pressed, err := t.keys.next(ctx, t.closed)
		if err != nil {
			return err
		}
		switch p.press(pressed) {
		case entered:
			return nil
		case declined:
			t.replacePrompt(nil, "  "+t.look.warn("declined"))
			return mcptask.ErrDeclined
		case dismissed:
			t.replacePrompt(nil, "  "+t.look.warn("dismissed"))
			return mcptask.ErrDismissed
		case interrupted:
			return t.passInterrupt(ctx)
		}
		if !t.keys.hasMore() {
			t.draw(p)
		}
	}
}

// passInterrupt restores the terminal, tells of Ctrl-C, and waits for the end of the question.
func (t *Terminal) passInterrupt(ctx context.Context) error {
	t.replacePrompt(nil, "  ^C")
	t.giveKeyboard()
	t.interrupt()
	select {
	case <-ctx.Done():
	case <-t.closed:
	}
	return errInterrupted
}

// errInterrupted says that the person pressed Ctrl-C and the question has ended since.
var errInterrupted = errors.New("the question was interrupted")

// draw draws a prompt.
func (t *Terminal) draw(p *prompt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isClosed() {
		width, height := t.size()
		t.drawPrompt(p.draw(width, height, t.look))
	}
}

// replacePrompt puts lines into the place of the prompt. If p is not nil, what was typed into it stays above them.
func (t *Terminal) replacePrompt(p *prompt, lines ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		return
	}
	t.removePrompt()
	if p != nil {
		width, height := t.size()
		drawn := p.draw(width, height, t.look)
		lines = append(drawn[len(drawn)-1:], lines...)
	}
	t.print(lines)
}

// explain turns the end of an edit into an error of Ask, and says so on the screen.
func (t *Terminal) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, mcptask.ErrDeclined), errors.Is(err, mcptask.ErrDismissed):
		return err
	case errors.Is(err, errNoKeyboard):
		return fmt.Errorf("%w: %w", mcptask.ErrCannotAsk, err)
	case ctx.Err() == nil:
		return fmt.Errorf("%w: %w", mcptask.ErrDismissed, err)
	case !errors.Is(err, errInterrupted):
		t.replacePrompt(nil, "  "+t.look.faint("The question is no longer asked."))
	}
	return fmt.Errorf("%w: %w", mcptask.ErrDismissed, context.Cause(ctx))
}
