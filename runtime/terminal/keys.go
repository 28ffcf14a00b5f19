package terminal

import "unicode/utf8"

// key is a key that a person pressed.
type key struct {
	code keyCode
	r    rune // of a keyRune
}

type keyCode int

const (
	keyRune keyCode = iota
	keyEnter
	keyBackspace
	keyClearLine
	keyClearWord
	keyUp
	keyDown
	keyPageUp
	keyPageDown
	keyDecline   // Ctrl-D
	keyInterrupt // Ctrl-C
	keyEscape
)

// maxSequence bounds the bytes of an escape sequence of a keyboard.
const maxSequence = 32

// keyParser turns the bytes of a keyboard into keys.
type keyParser struct {
	rest []byte // the beginning of a key
	keys []key
	// pasting says that the terminal marks the bytes as pasted: an end of a line is no Enter then.
	pasting bool
	// lineEnd says that a pasted line has ended. That is a blank if more text follows.
	lineEnd bool
}

// parse returns the keys that are complete.
func (p *keyParser) parse(data []byte) []key {
	p.rest, p.keys = append(p.rest, data...), nil
	for len(p.rest) > 0 {
		n := p.next()
		if n == 0 {
			break
		}
		p.rest = p.rest[n:]
	}
	return p.keys
}

// waits reports whether only an escape has come, or the beginning of a sequence. Time tells whether more follows.
func (p *keyParser) waits() bool { return len(p.rest) > 0 && p.rest[0] == '\x1b' }

// flush returns what the bytes mean if no more follow.
func (p *keyParser) flush() []key {
	isAlone := string(p.rest) == "\x1b" && !p.pasting
	p.rest = nil
	if isAlone {
		return []key{{code: keyEscape}}
	}
	return nil
}

// controls are the control characters that mean something.
var controls = map[byte]keyCode{
	'\r': keyEnter, '\n': keyEnter, 0x7f: keyBackspace, '\b': keyBackspace,
	0x15: keyClearLine, 0x17: keyClearWord, 0x04: keyDecline, 0x10: keyUp, 0x0e: keyDown,
}

// next reads what the bytes begin with, and returns its length. 0 means that more bytes have to come.
func (p *keyParser) next() int {
	switch c := p.rest[0]; {
	case c == 0x03: // in pasted text too: if the end of the text got lost, nothing else would help
		p.pasting, p.lineEnd = false, false
		p.press(keyInterrupt)
		return 1
	case c == '\x1b':
		return p.nextSequence()
	case p.pasting && (c == '\r' || c == '\n'):
		p.lineEnd = true
		return 1
	case p.pasting && c == '\t':
		p.write(' ')
		return 1
	case c < 0x20 || c == 0x7f:
		if code, ok := controls[c]; ok && !p.pasting {
			p.press(code)
		}
		return 1
	case !utf8.FullRune(p.rest):
		return 0
	}
	r, n := utf8.DecodeRune(p.rest)
	if (r != utf8.RuneError || n > 1) && (r < 0x80 || r >= 0xa0) {
		p.write(r)
	}
	return n
}

func (p *keyParser) press(code keyCode) { p.keys = append(p.keys, key{code: code}) }

func (p *keyParser) write(r rune) {
	if p.lineEnd {
		p.lineEnd = false
		p.keys = append(p.keys, key{r: ' '})
	}
	p.keys = append(p.keys, key{r: r})
}

// nextSequence is next for bytes that begin with an escape.
func (p *keyParser) nextSequence() int {
	switch {
	case len(p.rest) == 1:
		return 0
	case p.rest[1] == '\x1b': // the first one is alone
		if !p.pasting {
			p.press(keyEscape)
		}
		return 1
	case p.rest[1] != '[' && p.rest[1] != 'O':
		return 2 // with Alt: nothing
	}
	for i := 2; i < min(len(p.rest), maxSequence); i++ {
		switch c := p.rest[i]; {
		case c >= 0x40 && c <= 0x7e:
			p.pressSequence(string(p.rest[1 : i+1]))
			return i + 1
		case c < 0x20 || c > 0x7e:
			return i // no sequence
		}
	}
	if len(p.rest) >= maxSequence {
		return maxSequence
	}
	return 0
}

// pressSequence takes an escape sequence of a key, without the escape.
func (p *keyParser) pressSequence(sequence string) {
	switch sequence {
	case "[200~":
		p.pasting = true
		return
	case "[201~":
		p.pasting, p.lineEnd = false, false
		return
	}
	codes := map[string]keyCode{
		"[A": keyUp, "OA": keyUp, "[B": keyDown, "OB": keyDown, "[5~": keyPageUp, "[6~": keyPageDown,
	}
	if code, ok := codes[sequence]; ok && !p.pasting {
		p.press(code)
	}
}
