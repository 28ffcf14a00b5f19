package console

import (
	"cmp"
	"os"
	"path"
	"runtime/debug"
	"strings"
)

// serverName is what the head of each page calls the server.
type serverName struct{ Name, Version, Host string }

// nameServer returns the name of the server that a program has chosen, or else that of the program, with the program's
// version and host.
func nameServer(chosen string) serverName {
	n := serverName{Name: chosen}
	n.Host, _ = os.Hostname() // without one, the name has to do
	if info, ok := debug.ReadBuildInfo(); ok {
		program := path.Base(info.Path)
		if strings.TrimLeft(program, "v0123456789") == "" { // such as example.com/shop/v2
			program = path.Base(path.Dir(info.Path))
		}
		if program != "." && program != "command-line-arguments" {
			n.Name = cmp.Or(n.Name, program)
		}
		n.Version = versionOf(info)
	}
	n.Name = cmp.Or(n.Name, "tasks")
	return n
}

// versionOf returns the version of the main module, or the beginning of its commit, or "".
func versionOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	const commitLength = 12
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), commitLength)]
		}
	}
	return ""
}
