package calls

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestNameProgram checks what the printed commands begin with.
func TestNameProgram(t *testing.T) {
	hash := strings.Repeat("0f", 32)
	for path, want := range map[string]string{
		"/usr/local/bin/mcptaskgen": "mcptaskgen", "": "mcptaskgen",
		"/tmp/go-build1/b001/mcptaskgen.test":                    "mcptaskgen",
		"/home/ann/.cache/go-build/0f/" + hash + "-d/mcptaskgen": "go tool mcptaskgen",
		"/tmp/go-build1/b001/exe/mcptaskgen":                     "go tool mcptaskgen",
	} {
		if got := nameProgram(path); got != want {
			t.Errorf("%s for %s, want %s", got, path, want)
		}
	}
}

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
