package main

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

// TestLineFlags gives every flag of the command in a line for go generate, as it is read when files are compared.
func TestLineFlags(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	generateCommand().bind(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		text := "//go:generate mcptaskgen --" + f.Name
		if f.NoOptDefVal == "" {
			text += " x"
		}
		if f.Name == "package" || f.Name == "service" {
			text += " --tools x"
		}
		if line, err := commandline.ParseLine(text, "x.go", "p"); err != nil || line == nil || len(line.Packages) > 0 {
			t.Errorf("%s: %+v, %v", text, line, err)
		}
	})
}
