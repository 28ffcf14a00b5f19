package calls

import (
	"errors"
	"os"
	"testing"
)

// TestReadInputUntilCtrlC presses Ctrl-C while standard input stays open.
func TestReadInputUntilCtrlC(t *testing.T) {
	stdin, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = stdout.Close(), stdin.Close() }()
	interrupts := make(chan os.Signal, 1)
	interrupts <- os.Interrupt
	_, err = Config{Stdin: stdin, Interrupts: interrupts}.ReadInput(t.Context(), 10)
	if failure := new(Failure); !errors.As(err, &failure) || failure.Code != ExitInterrupted {
		t.Errorf("%#v", err)
	}
}
