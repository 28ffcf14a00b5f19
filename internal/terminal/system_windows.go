package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// flushInput discards input that was typed and not read.
func flushInput(in *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(in.Fd())) // then it counts as typed
}

// enableSequences makes a console take escape sequences.
func enableSequences(out *os.File) (restore func(), ok bool) {
	var mode uint32
	console := windows.Handle(out.Fd())
	if windows.GetConsoleMode(console, &mode) != nil {
		return func() {}, false
	}
	if windows.SetConsoleMode(console, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return func() {}, false
	}
	return func() { _ = windows.SetConsoleMode(console, mode) }, true
}
