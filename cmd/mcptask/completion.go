package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

const completionUsage = `mcptask completion prints a script that completes the command line of mcptask in a shell.

Usage:
  mcptask completion bash|zsh|fish

Load it in the shell:

  source <(mcptask completion bash)
  source <(mcptask completion zsh)
  mcptask completion fish | source

It completes commands, flags, and behind a URL the names of tools, arguments, choices and tasks, for
which it asks the server. It starts no programs.
`

// completeWord is the command that the scripts call. Its arguments are the words up to the cursor.
const completeWord = "__complete"

// completionScripts are the scripts, by shell. Bash breaks words at = and : too, so its script joins them again, and
// leaves out the text before the last break. The words may be a server's, and Bash writes them to the command line as
// they are, so the script quotes them. The other shells do that themselves.
var completionScripts = map[string]string{
	"bash": `_mcptask() {
  local line="${COMP_LINE:0:COMP_POINT}" words current kept reply
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current="${words[-1]}"
  kept="${current%"${current##*[=:]}"}"
  COMPREPLY=()
  while IFS= read -r reply; do
    [[ $reply == "$current"* ]] || continue
    reply="${reply#"$kept"}"
    [[ $reply =~ ^[A-Za-z0-9_.,/:=@%+-]*$ ]] || printf -v reply %q "$reply"
    COMPREPLY+=("$reply")
  done < <(mcptask __complete "${words[@]:1}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _mcptask mcptask
`,
	"zsh": `#compdef mcptask
_mcptask() {
  local -a replies open
  replies=("${(@f)$(mcptask __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  open=(${(M)replies:#*=})
  replies=(${replies:#*=})
  compadd -S '' -a open
  compadd -a replies
  (( ${#open} + ${#replies} )) || _files
}
compdef _mcptask mcptask
`,
	"fish": `function __mcptask_complete
  set -l words (commandline -opc) (commandline -ct)
  mcptask __complete $words[2..] 2>/dev/null
end
complete -c mcptask -a '(__mcptask_complete)'
`,
}

// completeWithin is how long a person waits for completions.
const completeWithin = 3 * time.Second

// complete prints the completions of the last of the words, a line each. It ignores errors, because
// nobody could read them.
func complete(ctx context.Context, words []string, stdout io.Writer) {
	if len(words) == 0 {
		return
	}
	current := words[len(words)-1]
	isFlag := strings.HasPrefix(current, "-")
	for _, word := range findCompletions(ctx, words, current) {
		// A server's word could drive the terminal, or become a flag.
		if strings.HasPrefix(word, current) && strings.HasPrefix(word, "-") == isFlag && terminal.Printable(word, false) == word {
			fmt.Fprintln(stdout, word)
		}
	}
}

// findCompletions returns words that may take the place of the current one, which is the last.
func findCompletions(ctx context.Context, words []string, current string) []string {
	if len(words) == 1 {
		return commandNames()
	}
	if words[0] == "completion" {
		return []string{"bash", "fish", "zsh"}
	}
	at := slices.IndexFunc(commands, func(c command) bool { return c.name == words[0] })
	if at < 0 {
		return nil
	}
	flags, config, _ := commands[at].flagSet()
	for i, word := range words[:len(words)-1] { // as they are typed
		words[i] = os.ExpandEnv(strings.Trim(word, `"`))
	}
	switch before := words[len(words)-2]; {
	case flags.Lookup("output") != nil && (before == "--output" || before == "-o"):
		return formats
	case words[0] == "tasks" && before == "--status":
		return statuses
	case before == "--revision":
		return schema.ReleasedRevisions()
	case strings.HasPrefix(current, "-"):
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return names
	}
	if flags.Parse(words[1:]) != nil || config.read(flags) != nil || config.server.URL == "" || len(config.rest) == 0 {
		return nil
	}
	if words[0] != "call" && words[0] != "tools" {
		config.takeListRevision()
	}
	config.attach(io.Discard, os.Stderr)
	config.noInput, config.quiet, config.verbose, config.timeout = true, true, false, completeWithin
	var completions []string
	_ = config.run(ctx, func(ctx context.Context, s *session) (err error) {
		completions, err = s.findWords(ctx, words[0], config.rest)
		return err
	})
	return completions
}

// findWords returns the completions of the last of the words behind the server.
func (s *session) findWords(ctx context.Context, command string, words []string) (completions []string, err error) {
	isFirst := len(words) == 1
	switch {
	case command == "watch", command == "cancel", command == "answer" && isFirst:
		tasks, err := s.listTasks(ctx)
		for _, task := range tasks {
			completions = append(completions, task.TaskID)
		}
		return completions, err
	case isFirst && (command == "call" || command == "tools"):
		tools, err := s.conn.ListTools(ctx)
		for _, tool := range tools {
			completions = append(completions, tool.Name)
		}
		return completions, err
	case command == "call":
		tool, err := s.findTool(ctx, words[0])
		return completeArguments(tool, words[1:]), err
	}
	return nil, nil
}

// completeArguments returns the completions of the words behind a tool: NAME= for each argument that words do not have
// yet, or NAME=VALUE if the last word, which is being typed, has the name and there are values to choose from.
func completeArguments(tool mcptask.ToolInfo, words []string) (completions []string) {
	given := map[string]bool{}
	for _, word := range words[:len(words)-1] {
		argument, _, _ := strings.Cut(word, "=")
		given[strings.TrimSuffix(argument, ":")] = true
	}
	typed, _, hasValue := strings.Cut(words[len(words)-1], "=")
	for _, a := range terminal.ListArguments(tool) {
		switch {
		case hasValue && a.Name == typed:
			for _, value := range a.Values {
				completions = append(completions, a.Name+"="+value)
			}
		case !hasValue && !given[a.Name] && a.Example != nil:
			completions = append(completions, a.Name+":=")
		case !hasValue && !given[a.Name]:
			completions = append(completions, a.Name+"=")
		}
	}
	return completions
}
