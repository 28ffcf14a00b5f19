// Package build describes the build of a command.
package build

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Describe describes the build of a program: the version of the module, the commit if the program was built in a
// checkout, and the version of Go. It reads the record that the go command left in the program.
func Describe(name string) string {
	info, _ := debug.ReadBuildInfo()
	return describe(name, info)
}

// describe is Describe for a record of the go command, which may be nil.
func describe(name string, info *debug.BuildInfo) string {
	version := "(devel)"
	settings := map[string]string{}
	if info != nil {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	text := name + " " + version + "\n"
	if commit := settings["vcs.revision"]; commit != "" {
		line := []string{"commit", commit, settings["vcs.time"]}
		if settings["vcs.modified"] == "true" {
			line = append(line, "with uncommitted changes")
		}
		text += strings.Join(line, " ") + "\n"
	}
	return text + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
}
