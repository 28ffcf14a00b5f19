package taskserver

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

func TestKnownClient(t *testing.T) {
	const minute = time.Minute
	for name, want := range map[string]ClientProfile{
		"":                              {},
		"claude":                        {},
		"goos":                          {},
		"claude-code":                   {Patience: 2 * minute},
		"goose-cli":                     {Patience: 5 * minute},
		"gemini-cli-mcp-client-ci":      {Patience: 10 * minute, ExtraArguments: []string{"wait_for_previous"}},
		"Visual Studio Code":            {Patience: 10 * minute, PrefersPlain: true},
		"Visual Studio Code - Insiders": {Patience: 10 * minute, PrefersPlain: true},
		"codex-mcp-client (via mcp-remote 0.1.37)": {Patience: 5 * minute},
	} {
		if got := KnownClient(ClientInfo{Name: name}); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}

// TestKnownClientsDiffer checks that no name stands for two programs: which of them is found would
// depend on chance.
func TestKnownClientsDiffer(t *testing.T) {
	for name := range knownClients {
		bare := strings.TrimSuffix(name, "*")
		for other := range knownClients {
			if prefix, ok := strings.CutSuffix(other, "*"); ok && other != name && strings.HasPrefix(bare, prefix) {
				t.Errorf("%q is one of %q too", name, other)
			}
		}
	}
}

// TestPlainWait checks how long a plain call blocks: the tool's wait, within the patience of its client.
func TestPlainWait(t *testing.T) {
	profile := func(client ClientInfo) ClientProfile {
		if client.Name == "" {
			return ClientProfile{}
		}
		return ClientProfile{Patience: 40 * time.Second, PatienceWithProgress: 10 * time.Minute}
	}
	server := newServer(t, Options{ClientProfile: profile}, newWaitTool("default", 0), newWaitTool("short", time.Second), newWaitTool("long", time.Hour))
	for _, c := range []struct {
		client, tool string
		progress     bool
		want         time.Duration
	}{
		{"", "default", false, DefaultWait},
		{"", "default", true, DefaultWait},
		{"", "short", false, time.Second},
		{"", "long", true, time.Hour},
		{"known", "default", false, 30 * time.Second},
		{"known", "default", true, 450 * time.Second},
		{"known", "short", true, time.Second},
		{"known", "long", false, 30 * time.Second},
		{"known", "long", true, 450 * time.Second},
	} {
		caller := Caller{Client: ClientInfo{Name: c.client}}
		if got := server.PlainWait(caller, c.tool, c.progress); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if got := (&Backend{}).ClientProfile(Caller{Client: ClientInfo{Name: "opencode"}}); !reflect.DeepEqual(got, knownClients["opencode"]) {
		t.Errorf("without the option: %+v", got)
	}
}

// TestClientProfilePanics checks that a panic of the option costs only the profile. A stranger chooses the
// name that it gets.
func TestClientProfilePanics(t *testing.T) {
	s := newServer(t, Options{Logger: slog.New(slog.DiscardHandler), ClientProfile: func(client ClientInfo) ClientProfile { panic(client.Name) }})
	if got := s.ClientProfile(Caller{Client: ClientInfo{Name: "opencode"}}); !reflect.DeepEqual(got, knownClients["opencode"]) {
		t.Errorf("%+v", got)
	}
}

func newWaitTool(name string, wait time.Duration) mcptask.Tool {
	return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Wait: wait, Task: mcptask.TaskOptional}},
		func(context.Context, *mcptask.Task, struct{}) (struct{}, error) { return struct{}{}, nil })
}
