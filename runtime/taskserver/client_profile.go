package taskserver

import (
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// DefaultWait is how long a plain call blocks if its tool sets no wait and its client's host is not
// known. Some hosts give a call up after 30 seconds.
const DefaultWait = 25 * time.Second

// ClientInfo is the name and the version that a client's program gives itself. The server cannot verify them.
type ClientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ClientProfile describes a client's program, which is part of a host such as an editor. It decides how the server
// answers plain calls of tools that have the fallback tools, and which arguments of calls it drops. It never decides who
// may call or who owns a task, because a program gives itself its name. 2026-07-28 means that name for display and logs. To
// use it for nothing else, let Options.ClientProfile return a zero ClientProfile for all programs.
type ClientProfile struct {
	// Patience is how long the host waits for the answer to a call, even if progress or comments
	// come meanwhile. 0 means that it is not known.
	Patience time.Duration
	// PatienceWithProgress is the same for a call that asks for progress, in a host that starts its
	// clock again with each report. The server reports at least every 15 seconds. 0 means that
	// progress changes nothing.
	PatienceWithProgress time.Duration
	// PrefersPlain says that the host shows people more of a plain call with progress than of a
	// task. In 2025-11-25 the server tells such a host that optional tools take no tasks.
	PrefersPlain bool
	// HidesStatus says that nobody sees the status messages of tasks. If the program cannot show a
	// question either, nobody would learn of it. So in 2026-07-28, where the server decides which calls
	// become tasks, its calls of tools that may ask become tasks only after the wait of a plain call.
	HidesStatus bool
	// ExtraArguments names the members that the program adds to the arguments of all calls, whatever the tool's
	// schema says. The server drops those that are not properties of the tool.
	ExtraArguments []string
}

// chooseWait returns how long a plain call may block if the tool's policy says wait. It leaves a
// quarter of the host's patience for the network and for work that comes before and after the wait.
func (p ClientProfile) chooseWait(wait time.Duration, progress bool) time.Duration {
	patience := p.Patience
	if progress {
		patience = max(patience, p.PatienceWithProgress)
	}
	longest := patience / 4 * 3
	switch {
	case longest <= 0 && wait == 0:
		return DefaultWait
	case longest <= 0:
		return wait
	case wait == 0:
		return longest
	}
	return min(wait, longest)
}

// PlainWait returns how long a plain call may block before it goes on behind the fallback tools: the
// tool's Policy.Wait, and at most three quarters of the time that the caller's host waits. Without a
// Policy.Wait it returns these three quarters, or DefaultWait if the host is not known. progress says
// that the call asks for progress.
func (b *Backend) PlainWait(caller Caller, tool string, progress bool) time.Duration {
	spec, _ := b.Tool(tool)
	return b.ClientProfile(caller).chooseWait(spec.Policy.Wait, progress)
}

// ClientProfile returns the profile of a caller's program, from Options.ClientProfile or, if that is nil, from
// KnownClient.
func (b *Backend) ClientProfile(caller Caller) (profile ClientProfile) {
	defer guard.Then(b.logger, "Options.ClientProfile", func() { profile = KnownClient(caller.Client) })
	if b.options.ClientProfile != nil {
		return b.options.ClientProfile(caller.Client)
	}
	return KnownClient(caller.Client)
}

// knownClients has a ClientProfile for each name that a program gives itself. A name that ends in an
// asterisk stands for all names that begin so. docs/connect-clients.md has the sources. If
// sources differ, the shortest time stands here.
var knownClients = map[string]ClientProfile{
	// Claude Code moves a call to the background after two minutes, and loses its result there.
	"claude-code":        {Patience: 2 * time.Minute},
	"claude-ai":          {Patience: time.Minute}, // Claude Desktop
	"claude-desktop-3p":  {Patience: time.Minute},
	"local-agent-mode-*": {Patience: time.Minute}, // Cowork
	"Anthropic/*":        {Patience: time.Minute}, // Claude on the web and its connectors
	"openai-mcp":         {Patience: time.Minute}, // ChatGPT
	"copilot-cli":        {Patience: 3 * time.Minute, PatienceWithProgress: 10 * time.Minute},
	"codex-mcp-client":   {Patience: 5 * time.Minute},
	"gemini-cli-mcp-*":   {Patience: 10 * time.Minute, ExtraArguments: []string{"wait_for_previous"}},
	"antigravity-client": {Patience: 3 * time.Minute},
	"goose*":             {Patience: 5 * time.Minute},
	"opencode":           {Patience: time.Minute, PatienceWithProgress: 10 * time.Minute},
	"mcporter":           {Patience: time.Minute},
	"inspector-cli":      {Patience: time.Minute, HidesStatus: true},
	"mcp-inspector":      {Patience: time.Minute, PatienceWithProgress: 10 * time.Minute},
	"Cline":              {Patience: time.Minute},
	"@cline/core":        {Patience: time.Minute},
	"Zed":                {Patience: time.Minute},
	"continue-*":         {Patience: time.Minute},
	"@n8n/*":             {Patience: time.Minute, ExtraArguments: []string{"action", "chatInput", "sessionId", "tool", "toolCallId"}},
	"@librechat/*":       {Patience: 30 * time.Second},
	"JetBrains-*":        {Patience: 30 * time.Second}, // Copilot in the editors of JetBrains
	// Early versions of Copilot CLI had this name, and so has Copilot in other editors.
	"github-copilot-developer": {Patience: 30 * time.Second},
	"spring-ai-mcp-client*":    {Patience: 20 * time.Second},
	// VS Code has no timer. It shows the progress of a call. Of a task it shows only that it runs.
	"Visual Studio Code*": {Patience: 10 * time.Minute, PrefersPlain: true},
	"Code - OSS*":         {Patience: 10 * time.Minute, PrefersPlain: true},
}

// KnownClient returns the profile of a program that this package knows by name. It returns the zero ClientProfile for
// any other name. It ignores the addition of a proxy, as in "codex-mcp-client (via mcp-remote 0.1.37)".
func KnownClient(client ClientInfo) ClientProfile {
	name, _, _ := strings.Cut(client.Name, " (via ")
	if profile, ok := knownClients[name]; ok {
		return profile
	}
	for known, profile := range knownClients {
		if prefix, ok := strings.CutSuffix(known, "*"); ok && strings.HasPrefix(name, prefix) {
			return profile
		}
	}
	return ClientProfile{}
}
