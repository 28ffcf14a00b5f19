// Package portable knows which tools the hosts of MCP and the providers of their models refuse, and finds the reasons in a
// tool. A host sends the tools of all its servers to a provider in one request, so one refused tool can take all of them
// away.
package portable

import (
	"fmt"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// Row is a construct that a host or a provider does not take.
type Row struct {
	Name      string // of the row, as notes and the documentation have it
	Construct string // follows "has": "a list of types"
	// Happens is a sentence without a period: who does what with a tool that has the construct.
	Happens string
	// AllTools is set if the tool takes other tools with it: all of the request, or all of its server.
	AllTools bool
	Seen     []Source
	// Declaration is the way out in a declaration in Go. It is empty if no declaration has the construct. Schema is the way
	// out in a JSON Schema, or in a list of tools.
	Declaration, Schema string
	// OfType is set if the construct belongs to the type of a value, and not to the field that has it.
	OfType bool
	// Silent says why the construct is only documented and never found by [Check]. It is empty if the construct is
	// refused in the form in which hosts of today send tools.
	Silent string
}

// message describes a refusal, with the places that have the construct of the row. The detail may be empty.
func (r *Row) message(places []string, detail string) string {
	const shown = 3
	has, named := "has", places
	if len(places) > 1 {
		has = "have"
	}
	if len(places) > shown+1 {
		named = append(slices.Clone(places[:shown]), fmt.Sprintf("%d more", len(places)-shown))
	}
	if detail != "" {
		detail = " (" + detail + ")"
	}
	return fmt.Sprintf("%s %s %s%s: %s [%s]", words.Join(named), has, r.Construct, detail, r.Happens, r.Name)
}

// Source is a public report or page that shows the refusal.
type Source struct {
	URL  string
	Date string // year and month
}

const github = "https://github.com/"

// The limits of the rows. The texts of the rows have them too.
const (
	maxName         = 64
	maxPrefixedName = 45
	maxProperty     = 64
	maxDescription  = 2048
	maxDepth        = 10
	maxTools        = 128
)

// The rows that [Check] and [CheckCount] find.
var (
	rootCombination = &Row{
		Name: "root-combination", Construct: "oneOf, anyOf, allOf, not, enum or const at the root of its input", AllTools: true,
		Happens: "Anthropic and OpenAI refuse such a tool, and all others with it",
		Schema:  "describe in words which properties go together, and check them in the handler",
		Seen: []Source{
			{github + "langchain-ai/langchain/issues/39271", "2026-08"}, {github + "anomalyco/opencode/issues/47543", "2026-09"},
			{github + "goruck/home-generative-agent/pull/545", "2026-08"},
		},
	}
	rootType = &Row{
		Name: "root-type", Construct: `an input without "type": "object" at its root`, AllTools: true,
		Happens: "Gemini CLI refuses such a tool, and all others with it, and Claude Code drops all tools of the server",
		Schema:  `write "type": "object" at the root`,
		Seen: []Source{
			{github + "google-gemini/gemini-cli/issues/23382", "2026-06"}, {github + "mikeyobrien/ralph-orchestrator/pull/351", "2026-07"},
		},
	}
	rootProperties = &Row{
		Name: "root-properties", Construct: "an input without properties", AllTools: true,
		Happens: "OpenAI refuses such a tool, and all others with it",
		Schema:  `write "properties": {} at the root`,
		Seen:    []Source{{github + "inboxapi/cli/issues/106", "2026-05"}, {github + "bnb-chain/bnbchain-mcp/issues/68", "2026-03"}},
	}
	propertyName = &Row{
		Name: "property-name", Construct: "a property name other than 1 to 64 letters, digits, _, . and -", AllTools: true,
		Happens:     "Anthropic refuses such a tool, and all others with it",
		Declaration: "give the field another name in its json tag",
		Schema:      "give the property another name",
		Seen: []Source{
			{github + "decocms/studio/pull/6874", "2026-09"}, {github + "ComposioHQ/composio/issues/3500", "2026-06"},
			{github + "aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws/issues/709", "2026-08"},
		},
	}
	toolNameLength = &Row{
		Name: "tool-name-length", Construct: "a name of more than 64 characters", AllTools: true,
		Happens:     "OpenAI, Gemini and Claude Desktop refuse such a tool, and all others with it",
		Declaration: "give the tool a name of up to 45 characters with name=, or a shorter prefix=: hosts put the server's name in front",
		Schema:      "give the tool a name of up to 45 characters: hosts put the server's name in front",
		Seen:        []Source{{github + "nanbingxyz/5ire/issues/403", "2026-01"}, {github + "loomle/loomle/issues/168", "2026-06"}},
	}
	toolNamePrefixed = &Row{
		Name: "tool-name-prefixed", Construct: "a name of more than 45 characters",
		Happens: "Claude Code sends mcp__, the server's name, __ and the tool's name, of which Anthropic's tool search takes 64 characters, " +
			"and Cursor leaves out a tool whose name has 60 with that of its server",
		Declaration: "give the tool a name of up to 45 characters with name=, or a shorter prefix=, which leaves 12 for the server's name",
		Schema:      "give the tool a name of up to 45 characters, which leaves 12 for the server's name",
		Seen:        []Source{{github + "ComposioHQ/composio/issues/2788", "2026-02"}, {github + "anthropics/claude-code/issues/23149", "2026-02"}, {github + "anthropics/claude-code/issues/19882", "2026-01"}},
	}
	toolNameCharacters = &Row{
		Name: "tool-name-characters", Construct: "a name with other characters than letters, digits, _ and -", AllTools: true,
		Happens:     "Anthropic and OpenAI refuse such a tool, and all others with it, unless the host changes the name",
		Declaration: "give the tool another name with name=, or the service another prefix=",
		Schema:      "give the tool another name",
		Seen: []Source{
			{github + "github/copilot-cli/issues/2581", "2026-04"}, {github + "hostinger/api-mcp-server/issues/49", "2026-07"},
			{github + "openai/codex/issues/8174", "2025-12"},
		},
	}
	toolNameStart = &Row{
		Name: "tool-name-start", Construct: "a name that does not start with a letter or _", AllTools: true,
		Happens:     "Gemini refuses such a tool, and all others with it, unless the host puts something in front",
		Declaration: "give the tool another name with name=, or the service a prefix=",
		Schema:      "give the tool another name",
		Seen:        []Source{{github + "Finerestaurant/kicad-mcp-python/issues/2", "2026-01"}, {github + "kaitranntt/ccs/issues/25", "2025-11"}},
	}
	typeList = &Row{
		Name: "type-list", Construct: "a list of types", AllTools: true,
		Happens:     "Gemini refuses such a tool, and all others with it, in Copilot CLI, Gemini Code Assist and OpenCode",
		Declaration: "remove nullable from the tag, and add omitempty if callers may leave the field out",
		Schema:      "write one type: a property that may be null can be left out of required instead",
		Seen: []Source{
			{github + "github/copilot-cli/issues/4623", "2026-09"}, {github + "google-gemini/gemini-cli/issues/21094", "2026-03"},
			{github + "anomalyco/opencode/issues/48073", "2026-09"}, {github + "netease-lcap/wave-agent/pull/284", "2026-01"},
		},
	}
	enumNumbers = &Row{
		Name: "enum-numbers", OfType: true, Construct: "an enum of numbers or booleans", AllTools: true,
		Happens:     "Gemini refuses such a tool, and all others with it",
		Declaration: "write //mcptask:enum strings above a type with constants, whose JSON then has their names, or make the values strings",
		Schema:      "make it an enum of strings",
		Seen: []Source{
			{github + "kensho-technologies/kfinance/pull/128", "2026-05"}, {github + "github/copilot-cli/issues/4835", "2026-09"},
			{github + "diegosouzapw/OmniRoute/pull/760", "2026-03"},
		},
	}
	enumEmpty = &Row{
		Name: "enum-empty", OfType: true, Construct: `"" in an enum`, AllTools: true,
		Happens:     "Gemini refuses such a tool, and all others with it",
		Declaration: "give the empty value a name such as none, or remove it and make the field optional with omitempty",
		Schema:      "give the empty value a name such as none, or remove it and leave the property out of required",
		Seen:        []Source{{github + "anomalyco/opencode/pull/46676", "2026-09"}, {github + "sbroenne/mcp-server-excel/issues/607", "2026-04"}},
	}
	enumNull = &Row{
		Name: "enum-null", Construct: "null in an enum", AllTools: true,
		Happens:     "Gemini refuses such a tool, and all others with it",
		Declaration: "remove nullable from the tag, and add omitempty if callers may leave the field out",
		Schema:      "remove it and leave the property out of required",
		Seen:        []Source{{github + "router-for-me/CLIProxyAPI/pull/4545", "2026-07"}, {github + "router-for-me/CLIProxyAPI/pull/4688", "2026-07"}},
	}
	booleanSchema = &Row{
		Name: "boolean-schema", Construct: "true or false in the place of a schema", AllTools: true,
		Happens: "Claude Code and OpenCode drop all tools of the server, and Gemini refuses all tools of the request",
		Schema:  "write a schema with a type for true",
		Seen: []Source{
			{github + "anthropics/claude-code/issues/92900", "2026-09"}, {github + "anomalyco/opencode/issues/49464", "2026-09"},
			{github + "can1357/oh-my-pi/issues/5604", "2026-07"},
		},
	}
	noType = &Row{
		Name: "no-type", Construct: "a property or items without a type, such as {}", AllTools: true,
		Happens:     "Gemini refuses such a tool, and all others with it, in hosts on the AI SDK or LangChain",
		Declaration: "give the field a type, such as a struct, or a string that holds JSON; or say which it has, such as jsonschema:\"type=object\"",
		Schema:      "write a type",
		Seen: []Source{
			{github + "awslabs/mcp/issues/3328", "2026-04"}, {github + "nowledge-co/community/issues/258", "2026-05"},
			{github + "google-gemini/gemini-cli/pull/5694", "2025-08"},
		},
	}
	arrayItems = &Row{
		Name: "array-items", Construct: "an array without items", AllTools: true,
		Happens: "VS Code leaves such a tool out, and OpenAI and Gemini refuse it and all others with it",
		Schema:  "write items",
		Seen: []Source{
			{github + "Skyvern-AI/skyvern/issues/8611", "2026-09"}, {github + "rootlyhq/rootly-mcp-server/issues/82", "2026-04"},
			{github + "bnb-chain/bnbchain-mcp/issues/68", "2026-03"},
		},
	}
	itemsList = &Row{
		Name: "items-list", Construct: "a list of schemas as items", AllTools: true,
		Happens: "Gemini and xAI refuse such a tool, and all others with it",
		Schema:  "write one schema as items, or take an object with a property for each item",
		Seen:    []Source{{github + "NousResearch/hermes-agent/pull/20976", "2026-05"}, {github + "zavora-ai/adk-rust/pull/330", "2026-05"}},
	}
	reference = &Row{
		Name: "reference", OfType: true, Construct: "a reference ($ref)",
		Happens:     "Copilot CLI, VS Code and Codex hide what it refers to from the model, and some hosts of Kimi refuse such a tool, and all others with it",
		Declaration: "take a type that does not contain itself, such as a list whose items name their parent, and that has fewer fields if it has thousands",
		Schema:      "write the schema where it is used",
		Seen: []Source{
			{github + "github/copilot-cli/issues/1876", "2026-03"}, {github + "PrefectHQ/fastmcp/pull/2808", "2026-01"},
			{github + "CommandCodeAI/command-code/issues/566", "2026-07"}, {github + "Softeria/ms-365-mcp-server/pull/643", "2026-08"},
			{github + "openai/codex/issues/3152", "2025-09"},
		},
	}
	outputDialect = &Row{
		Name: "output-dialect", Construct: "an output schema whose $schema is not draft 2020-12",
		Happens: "Claude Code and Claude Desktop cannot call such a tool",
		Schema:  "remove $schema",
		Seen:    []Source{{github + "anthropics/claude-code/issues/90549", "2026-08"}, {github + "nataliapc/mcp-openmsx/issues/22", "2026-09"}},
	}
	pattern = &Row{
		Name: "pattern", Construct: `a pattern with lookaround or \p{…}`, AllTools: true,
		Happens:     "OpenAI refuses such a tool, and all others with it",
		Declaration: "write a pattern without it, and check the rest in the handler",
		Schema:      "write a pattern without it, and let the server check the rest",
		Seen: []Source{
			{github + "langfuse/langfuse/issues/14770", "2026-07"}, {github + "zed-industries/zed/issues/60474", "2026-07"},
			{github + "can1357/oh-my-pi/issues/2784", "2026-06"},
		},
	}
	depth = &Row{
		Name: "depth", Construct: "schemas nested more than 10 deep", AllTools: true,
		Happens:     "Kimi refuses such a tool, and all others with it",
		Declaration: "flatten the type, or make two tools of it",
		Schema:      "flatten the schema, or make two tools of it",
		Seen:        []Source{{github + "anomalyco/opencode/issues/25495", "2026-05"}},
	}
	descriptionLength = &Row{
		Name: "description-length", Construct: "a description of more than 2,048 characters",
		Happens:     "Claude Code cuts it off there",
		Declaration: "shorten the comment, and move what concerns one argument to its field",
		Schema:      "shorten it, and move what concerns one argument to its property",
		Seen:        []Source{{github + "anthropics/claude-code/issues/87650", "2026-08"}, {github + "anthropics/claude-code/issues/41593", "2026-03"}},
	}
	toolCount = &Row{
		Name: "tool-count", Construct: "more than 128 tools", AllTools: true,
		Happens:     "OpenAI and Copilot refuse a request with so many",
		Declaration: "serve them with several servers, or make one tool of several",
		Schema:      "serve them with several servers, or make one tool of several",
		Seen:        []Source{{github + "microsoft/copilot-intellij-feedback/issues/1842", "2026-07"}, {github + "anomalyco/opencode/issues/4909", "2025-11"}},
	}
)

// dropped is why an unknown keyword is harmless.
const dropped = "Most hosts drop it."

// Rows lists the table.
func Rows() []*Row {
	return append([]*Row{
		rootCombination, rootType, rootProperties, propertyName, toolNameLength, toolNamePrefixed, toolNameCharacters, toolNameStart, typeList,
		enumNumbers, enumEmpty, enumNull, booleanSchema, noType, arrayItems, itemsList, reference, outputDialect, pattern, depth, descriptionLength, toolCount,
	}, silent...)
}

// RowNames lists the names of the rows that [Check] and [CheckCount] find.
func RowNames() []string {
	var names []string
	for _, row := range Rows() {
		if row.Silent == "" {
			names = append(names, row.Name)
		}
	}
	return names
}

// silent are the rows that are only documented.
var silent = []*Row{
	{
		Name: "property-start", Construct: "a property whose name does not start with a letter or _, or has . or -",
		Happens: "The reference of Vertex AI rules it out",
		Seen:    []Source{{"https://cloud.google.com/php/docs/reference/cloud-ai-platform/1.5.0/V1.FunctionDeclaration", "2025-09"}},
		Silent:  "No report of a refusal is known.",
	},
	{
		Name: "exclusive-bounds", Construct: "exclusiveMinimum or exclusiveMaximum", AllTools: true,
		Happens: "Gemini's form `parameters` refuses it",
		Seen:    []Source{{github + "ahmadrosid/nakama/issues/292", "2026-08"}, {github + "oracle/langchain-oracle/pull/291", "2026-08"}},
		Silent:  dropped,
	},
	{
		Name: "map-keys", Construct: "patternProperties or propertyNames", AllTools: true,
		Happens: "Gemini's form `parameters` refuses it",
		Seen:    []Source{{github + "zendev-sh/goai/pull/108", "2026-06"}, {github + "tailcallhq/forgecode/pull/3426", "2026-05"}},
		Silent:  dropped,
	},
	{
		Name: "const", Construct: "const", AllTools: true,
		Happens: "Gemini's form `parameters` refuses it",
		Seen:    []Source{{github + "taylorwilsdon/google_workspace_mcp/issues/1099", "2026-09"}},
		Silent:  dropped,
	},
	{
		Name: "tuple", Construct: "prefixItems", AllTools: true,
		Happens: "Gemini's form `parameters` refuses it",
		Seen:    []Source{{github + "diegosouzapw/OmniRoute/issues/12871", "2026-09"}},
		Silent:  dropped + " An array with prefixItems alone is found as `array-items`.",
	},
	{
		Name: "other-keywords", Construct: "uniqueItems, multipleOf, examples, contentEncoding, $schema and others", AllTools: true,
		Happens: "Gemini's form `parameters` refuses them",
		Seen:    []Source{{github + "danny-avila/LibreChat/pull/13850", "2026-06"}},
		Silent:  dropped,
	},
	{
		Name: "format", Construct: "a format other than date-time and enum", AllTools: true,
		Happens: "Gemini refused it",
		Seen:    []Source{{github + "google-gemini/gemini-cli/issues/2237", "2025-06"}},
		Silent:  "All reports are from 2025, and Vertex AI now documents formats such as email.",
	},
	{
		Name: "object-properties", Construct: "an object without properties inside an input", AllTools: true,
		Happens: "Gemini refused it",
		Seen:    []Source{{github + "MarkusPfundstein/mcp-obsidian/issues/21", "2025-03"}},
		Silent:  "All reports are from the first half of 2025.",
	},
	{
		Name: "input-dialect", Construct: "an input whose $schema is not draft 2020-12", AllTools: true,
		Happens: "Anthropic refused some of them",
		Seen:    []Source{{github + "anthropics/claude-code/issues/586", "2025-07"}, {github + "nataliapc/mcp-openmsx/issues/22", "2026-09"}},
		Silent:  "The tools of servers on the TypeScript SDK 1 name draft-07, and work. Anthropic refuses what is invalid in 2020-12.",
	},
	{
		Name: "description-openai", Construct: "a description of more than 1,024 characters", AllTools: true,
		Happens: "OpenAI refused it",
		Seen:    []Source{{github + "getsentry/sentry-mcp/issues/106", "2025-04"}},
		Silent:  "All reports are from the first half of 2025.",
	},
	{
		Name: "tool-count-cursor", Construct: "more than 40 tools, or 80",
		Happens: "Cursor left the others out, and later warned",
		Seen:    []Source{{github + "anyproto/anytype-mcp/issues/5", "2025-06"}, {github + "Snowflake-Labs/mcp/issues/77", "2025-09"}},
		Silent:  "The number changes, and counts the tools of all servers.",
	},
	{
		Name: "strict", AllTools: true,
		Construct: "an optional property, an open object, allOf, not, or more than 10 levels, 5,000 properties, 1,000 values of enums or 120,000 characters of names",
		Happens:   "OpenAI refuses it in strict mode",
		Seen:      []Source{{"https://jsonschemaprofiles.unitvectorylabs.com/schemas/openai", "2026-02"}},
		Silent:    "Hosts send the tools of MCP servers without strict mode.",
	},
}
