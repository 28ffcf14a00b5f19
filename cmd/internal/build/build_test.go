package build

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	goVersion := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	released := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}
	checkout := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
		{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.time", Value: "2026-11-23T09:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	for want, info := range map[string]*debug.BuildInfo{
		"mcptaskgen (devel)\n" + goVersion: nil,
		"mcptaskgen v1.2.3\n" + goVersion:  released,
		"mcptaskgen (devel)\ncommit 0123abc 2026-11-23T09:00:00Z with uncommitted changes\n" + goVersion: checkout,
	} {
		if got := describe("mcptaskgen", info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
