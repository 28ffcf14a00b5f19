package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/calls"
	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/runtime/terminal"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

const completionUsage = `mcptaskgen completion prints a script that completes the command line of mcptaskgen in a shell.

Usage:
  mcptaskgen completion bash|zsh|fish

Load it in the shell:

  source <(mcptaskgen completion bash)
  source <(mcptaskgen completion zsh)
  mcptaskgen completion fish | source

It completes commands, flags, the templates of init, and behind a URL the names of tools, arguments
and choices, for which it asks the server. It starts no programs.
`

// completeWord is the command that the scripts call. Its arguments are the words up to the cursor.
const completeWord = "__complete"

// completionScripts are the scripts, by shell. Bash breaks words at = and : too, so its script joins them again, and leaves
// out what is before the last break. The words may be a server's, and Bash writes them to the command line as they are, so
// the script quotes them. The other shells do that themselves.
var completionScripts = map[string]string{
	"bash": `_mcptaskgen() {
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
  done < <(mcptaskgen __complete "${words[@]:1}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _mcptaskgen mcptaskgen
`,
	"zsh": `#compdef mcptaskgen
_mcptaskgen() {
  local -a replies open
  replies=("${(@f)$(mcptaskgen __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  open=(${(M)replies:#*=})
  replies=(${replies:#*=})
  compadd -S '' -a open
  compadd -a replies
  (( ${#open} + ${#replies} )) || _files
}
compdef _mcptaskgen mcptaskgen
`,
	"fish": `function __mcptaskgen_complete
  set -l words (commandline -opc) (commandline -ct)
  mcptaskgen __complete $words[2..] 2>/dev/null
end
complete -c mcptaskgen -a '(__mcptaskgen_complete)'
`,
}

func completionCommand() command {
	return command{name: "completion", usage: completionUsage, bind: func(*pflag.FlagSet) func(context.Context, invocation) int {
		return func(_ context.Context, i invocation) int {
			shells := slices.Sorted(maps.Keys(completionScripts))
			if len(i.args) != 1 || completionScripts[i.args[0]] == "" {
				return i.printError(fmt.Errorf("mcptaskgen completion: name one shell: %s", strings.Join(shells, ", ")))
			}
			return i.printText(completionScripts[i.args[0]], nil)
		}
	}}
}

// complete prints how the last of the words may go on, a line each.
func (i invocation) complete(ctx context.Context) int {
	if len(i.args) == 0 {
		return exitOK
	}
	current := i.args[len(i.args)-1]
	isFlag := strings.HasPrefix(current, "-")
	for _, word := range i.findCompletions(ctx, current) {
		// A server's word could drive the terminal, or become a flag.
		if strings.HasPrefix(word, current) && strings.HasPrefix(word, "-") == isFlag && terminal.Printable(word, false) == word {
			fmt.Fprintln(i.stdout, word)
		}
	}
	return exitOK
}

// findCompletions returns words that may take the place of the current one.
func (i invocation) findCompletions(ctx context.Context, current string) []string {
	if len(i.args) == 1 && !strings.HasPrefix(current, "-") {
		return commandNames()
	}
	c, words := generateCommand(), i.args
	if at := slices.Index(commandNames(), i.args[0]); at >= 0 {
		c, words = namedCommands()[at], i.args[1:]
	}
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	c.bind(flags)
	if values := completeValues(flags, words); values != nil {
		return values
	}
	if strings.HasPrefix(current, "-") {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return names
	}
	if err := flags.Parse(words); err != nil {
		return nil
	}
	if c.name == "completion" {
		return slices.Sorted(maps.Keys(completionScripts))
	}
	return i.completeRest(ctx, c.name, flags)
}

// completeValues returns what the last of the words may be if it is the value of a flag that has few, or else nil.
func completeValues(flags *pflag.FlagSet, words []string) []string {
	current, before := words[len(words)-1], ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	for name, values := range map[string][]string{
		"template": generator.ScaffoldTemplates(),
		"output":   {calls.FormatText, calls.FormatJSON, calls.FormatLines},
		"revision": schema.ReleasedRevisions(),
	} {
		flag := flags.Lookup(name)
		if flag == nil {
			continue
		}
		if before == "--"+name || flag.Shorthand != "" && before == "-"+flag.Shorthand {
			return values
		}
		if strings.HasPrefix(current, "--"+name+"=") {
			for i, value := range values {
				values[i] = "--" + name + "=" + value
			}
			return values
		}
	}
	return nil
}

// completeRest returns what may stand behind the server of a command.
func (i invocation) completeRest(ctx context.Context, name string, flags *pflag.FlagSet) []string {
	server, ok := lookUpServer(flags)
	if !ok {
		return nil
	}
	to, rest, err := server.read(flags.Args(), flags.ArgsLenAtDash())
	if err != nil || len(rest) == 0 {
		return nil
	}
	config := i.attach(calls.Config{Server: to, Format: calls.FormatText})
	switch {
	case name == "call" && len(rest) > 1:
		return calls.CompleteArguments(ctx, config, rest[0], rest[1:])
	case len(rest) > 1 && name != "watch" && name != "cancel":
	case name == "call", name == "tools":
		return calls.CompleteTools(ctx, config)
	case name == "watch", name == "cancel", name == "answer":
		return calls.CompleteTasks(ctx, config)
	}
	return nil
}
