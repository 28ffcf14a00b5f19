package terminal_test

import (
	"fmt"
	"os"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/terminal"
)

// The output of an example is no terminal, so there is a line for each change.
func ExampleTerminal_Show() {
	screen := terminal.New(terminal.Options{In: os.Stdin, Out: os.Stdout})
	defer screen.Close()
	for done := range 3 {
		screen.Show("render", mcptask.Snapshot{
			Status: mcptask.StatusWorking, Progress: mcptask.ProgressReport{Done: float64(done), Total: 3, Message: "frames"},
		})
	}
	screen.Show("render", mcptask.Snapshot{Status: mcptask.StatusCompleted})
	// Output:
	// render: 0/3 frames
	// render: 1/3 frames
	// render: 2/3 frames
	// render: done
}

func ExamplePrintable() {
	fmt.Print(terminal.Printable("All is \x1b[32mwell\x1b[0m.\r\n", true))
	// Output: All is well.
}
