package mcptask

import (
	"strings"
	"time"
)

// DefaultWait is how long a plain call blocks if neither its tool nor its client's host says
// otherwise. Common hosts give a call up after 60 seconds.
const DefaultWait = 45 * time.Second

// ClientInfo is how the program of a client names itself. Nothing proves it.
type ClientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ClientProfile is what a server knows of a client's program, which is part of a host such as an editor. It decides how the server answers plain calls
// of tools that have the fallback tools, and never whose a task is or who may call.
type ClientProfile struct {
	// Patience is how long the host waits for the answer to a call, whatever comes meanwhile. 0
	// means that it is not known.
	Patience time.Duration
	// PatienceWithProgress is the same for a call that asks for progress, in a host whose clock
	// begins anew with each report of progress. The server reports at least every 15 seconds. 0
	// means that progress changes nothing.
	PatienceWithProgress time.Duration
	// PrefersPlain says that people see more of a plain call with progress than of a task. In
	// 2025-11-25 such a host is told that optional tools take no tasks.
	PrefersPlain bool
	// HidesStatus says that nobody sees the status messages of tasks. If the program cannot show a
	// question either, nobody would learn of it. So its calls of tools that may ask are answered
	// plainly in 2026-07-28, where the server decides which calls become tasks.
	HidesStatus bool
}

// wait returns how long a plain call may block if the tool's policy says wait. A quarter of the
// patience is for the way.
func (p ClientProfile) wait(wait time.Duration, progress bool) time.Duration {
	patience := p.Patience
	if progress {
		patience = max(patience, p.PatienceWithProgress)
	}
	bears := patience / 4 * 3
	switch {
	case bears <= 0 && wait == 0:
		return DefaultWait
	case bears <= 0:
		return wait
	case wait == 0:
		return bears
	}
	return min(wait, bears)
}

// PlainWait returns how long a plain call may block before it goes on behind the fallback tools:
// the tool's Policy.Wait, but not longer than the caller's host waits. Without a Policy.Wait it is
// as long as that host waits, or DefaultWait. progress says that the call asks for progress.
func (s *Server) PlainWait(caller Caller, tool string, progress bool) time.Duration {
	spec, _ := s.Tool(tool)
	return s.ClientProfile(caller).wait(spec.Policy.Wait, progress)
}

// ClientProfile returns what is known of a caller's program: what Options.ClientProfile says, or
// KnownClient.
func (s *Server) ClientProfile(caller Caller) ClientProfile {
	if s.options.ClientProfile != nil {
		return s.options.ClientProfile(caller.Client)
	}
	return KnownClient(caller.Client)
}

// knownClients has a ClientProfile for each name that a program gives itself. A name that ends in an
// asterisk stands for all that begin so. docs/connect-clients.md says where the times come from. If
// sources differ, the shortest time stands here.
var knownClients = map[string]ClientProfile{
	// Claude Code takes a call that lasts two minutes to the background, where its result is lost.
	"claude-code":         {Patience: 2 * time.Minute},
	"claude-ai":           {Patience: time.Minute}, // Claude Desktop
	"claude-desktop-3p":   {Patience: time.Minute},
	"local-agent-mode-*":  {Patience: time.Minute}, // Cowork
	"Anthropic/*":         {Patience: time.Minute}, // Claude on the web and its connectors
	"openai-mcp":          {Patience: time.Minute}, // ChatGPT
	"copilot-cli":         {Patience: 3 * time.Minute, PatienceWithProgress: 10 * time.Minute},
	"codex-mcp-client":    {Patience: 5 * time.Minute},
	"gemini-cli-mcp-*":    {Patience: 10 * time.Minute},
	"antigravity-client":  {Patience: 3 * time.Minute},
	"goose*":              {Patience: 5 * time.Minute},
	"opencode":            {Patience: time.Minute, PatienceWithProgress: 10 * time.Minute},
	"mcporter":            {Patience: time.Minute},
	"inspector-cli":       {Patience: time.Minute, HidesStatus: true},
	"mcp-inspector":       {Patience: time.Minute, PatienceWithProgress: 10 * time.Minute},
	"Cline":               {Patience: time.Minute},
	"@cline/core":         {Patience: time.Minute},
	"Zed":                 {Patience: time.Minute},
	"continue-*":          {Patience: time.Minute},
	"@n8n/*":              {Patience: time.Minute},
	"make-app-mcp-client": {Patience: 40 * time.Second},
	"@librechat/*":        {Patience: 30 * time.Second},
	"JetBrains-*":         {Patience: 30 * time.Second}, // Copilot in the editors of JetBrains
	// Early versions of Copilot CLI had this name, and so has Copilot in other editors.
	"github-copilot-developer": {Patience: 30 * time.Second},
	"spring-ai-mcp-client*":    {Patience: 20 * time.Second},
	// VS Code has no timer. It shows the progress of a call, and of a task only that it runs.
	"Visual Studio Code*": {Patience: 10 * time.Minute, PrefersPlain: true},
	"Code - OSS*":         {Patience: 10 * time.Minute, PrefersPlain: true},
}

// KnownClient returns what is known of a program by its name: the zero ClientProfile for a name that
// is not known. A proxy may have added itself to the name, as in "codex-mcp-client (via mcp-remote
// 0.1.37)".
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
