package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"
)

const versionUsage = `mcptaskgen version prints what this program was built from, for reports of problems.

Usage:
  mcptaskgen version

It prints the version of the module, the commit if the program was built in a checkout, and the
version of Go. mcptaskgen --version does the same.
`

func versionCommand() command {
	return command{name: "version", usage: versionUsage, bind: func(*pflag.FlagSet) func(context.Context, invocation) int {
		return func(_ context.Context, i invocation) int { return i.printVersion() }
	}}
}

func (i invocation) printVersion() int {
	info, _ := debug.ReadBuildInfo()
	fmt.Fprint(i.stdout, describeBuild(info))
	return exitOK
}

// describeBuild describes a build by what the go command recorded in the program. info may be nil.
func describeBuild(info *debug.BuildInfo) string {
	version, system := "(devel)", runtime.Version()
	settings := map[string]string{}
	if info != nil {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	text := "mcptaskgen " + version + "\n"
	if commit := settings["vcs.revision"]; commit != "" {
		line := []string{"commit", commit, settings["vcs.time"]}
		if settings["vcs.modified"] == "true" {
			line = append(line, "with uncommitted changes")
		}
		text += strings.Join(line, " ") + "\n"
	}
	return text + system + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
}
