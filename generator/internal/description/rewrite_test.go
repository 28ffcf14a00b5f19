package description_test

import (
	"go/ast"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/description"
)

func TestTool(t *testing.T) {
	for _, test := range []struct{ method, name, text, want string }{
		{"RunPipeline", "run_pipeline", "RunPipeline builds one branch.", "Builds one branch."},
		{"RunPipeline", "ci_run", "RunPipeline only builds. Call RunPipeline again to test.", "Only builds. Call `ci_run` again to test."},
		{"RunPipeline", "run_pipeline", "RunPipeline may take minutes.", "May take minutes."},
		{"RunPipeline", "run_pipeline", "RunPipeline is used to build a branch.", "Used to build a branch."},
		{"CheckBranch", "check_branch", "CheckBranch reports whether a branch builds.", "Reports whether a branch builds."},
		{"RunPipeline", "run_pipeline", "RunPipeline: builds a branch.", "Builds a branch."},
		{"RunPipeline", "run_pipeline", "RunPipeline - build a branch", "Build a branch"},
		{"RunPipeline", "run_pipeline", "RunPipeline", "`run_pipeline`"},
		{"RunPipeline", "run_pipeline", "The RunPipeline tool builds a branch.", "The `run_pipeline` tool builds a branch."},
		{"RunPipeline", "run_pipeline", "builds a branch", "Builds a branch"},
		{"ListIssues", "list_issues", "ListIssues for a repository.", "`list_issues` for a repository."},
		{"Search", "search", "Search finds articles by their text.", "Finds articles by their text."},
		{"Search", "search", "Search returns all articles.", "Returns all articles."},
		{"Search", "search", "Search issues and pull requests in a repository.", "Search issues and pull requests in a repository."},
		{"Search", "search", "Search posts by author. Search ignores case.", "Search posts by author. `search` ignores case."},
		{"List", "list", "List runs of a workflow", "List runs of a workflow"},
		{"Get", "get_issue", "Get details of one issue", "Get details of one issue"},
		{"Deploy", "deploy", "Deploy the service. Call Deploy once.", "Deploy the service. Call `deploy` once."},
		{"Bake", "bake", "Bake bakes loaves. It takes minutes.", "Bakes loaves. It takes minutes."},
		{"List", "list_lists", "List lists of a board", "List lists of a board"},
		{"Find", "find_uses", "Find uses of a symbol", "Find uses of a symbol"},
		{"Query", "query", "Query queries a database.", "Queries a database."},
		{"Approve", "approve", "Approve asks before it ships.", "Asks before it ships."},
		{"Wait", "wait", "Wait works until it is canceled.", "Works until it is canceled."},
		{"List", "list_works", "List works of an author", "List works of an author"},
		{"Greet", "greet", "Greet greets the caller.", "Greets the caller."},
		{"Run", "run", "Runner of all jobs.", "Runner of all jobs."},
		{"Run", "run", "", ""},
	} {
		if got := description.Tool(test.method, test.name, test.text, nil); got != test.want {
			t.Errorf("%s: %q became %q, want %q", test.method, test.text, got, test.want)
		}
	}
}

func TestService(t *testing.T) {
	tools := description.Names{"RunPipeline": "run_pipeline"}
	for _, test := range []struct{ name, text, want string }{
		{"CI", "CI runs jobs. Begin with RunPipeline.", "Runs jobs. Begin with `run_pipeline`."},
		{"Bakery", "Bakery sells bread.", "Sells bread."},
		{"Lab", "Lab is a photo lab.", "A photo lab."},
	} {
		if got := description.Service(test.name, test.text, tools); got != test.want {
			t.Errorf("%s: %q became %q, want %q", test.name, test.text, got, test.want)
		}
	}
}

func TestField(t *testing.T) {
	for _, test := range []struct{ goName, jsonName, text, want string }{
		{"Branch", "branch", "Branch is the branch to build.", "The branch to build."},
		{"Steps", "steps", "Steps are what ran.\n\nSteps may be empty.", "What ran.\n\n`steps` may be empty."},
		{"Branch", "branch", "The branch to build. If Branch is empty, the default branch is built.", "The branch to build. If `branch` is empty, the default branch is built."},
		{"Branch", "branch", "The branch. Branch names are case-sensitive.", "The branch. Branch names are case-sensitive."},
		{"Branch", "Branch", "The branch to build, if Branch is set", "The branch to build, if `Branch` is set"},
		{"DryRun", "dry_run", "DryRun only says what would be done.", "`dry_run` only says what would be done."},
		{"DryRun", "dry_run", "If DryRun is set, nothing is changed.", "If `dry_run` is set, nothing is changed."},
		{"DryRun", "dry_run", "With `DryRun`, [DryRun], [Options.DryRun] or Options.DryRun nothing is changed.", "With `dry_run`, `dry_run`, `dry_run` or `dry_run` nothing is changed."},
		{"DryRun", "dry_run", "An example:\n\n\t{\"DryRun\": true}", "An example:\n\n\t{\"dry_run\": true}"},
		{"DryRun", "dry_run", "DryRun, if set, changes nothing.", "`dry_run`, if set, changes nothing."},
		{"MaxResults", "maxResults", "MaxResults limits the results.", "`maxResults` limits the results."},
		{"MaxResults", "maxResults", "MaxResults defaults to 10.", "Defaults to 10."},
		{"MaxResults", "maxResults", "MaxResults must be positive", "Must be positive"},
		{"MaxResults", "max_results", "MaxResults of the search", "`max_results` of the search"},
		{"MaxResults", "max_results", "MaxResults specifies how many results come back", "How many results come back"},
		{"MaxResults", "max_results", "MaxResults holds the number of results.", "The number of results."},
		{"Labels", "labels", "Labels contains the names of labels", "The names of labels"},
		{"PolicyURI", "policy_uri", "PolicyURI (policy_uri) is an optional URL of a page.", "An optional URL of a page."},
		{"Labels", "labels", "Labels to add", "Labels to add"},
		{"Kind", "kind", "Kind has no default.", "`kind` has no default."},
		{"Label", "label", "Label comes back in the result.", "`label` comes back in the result."},
		{"Timeout", "timeout", "Timeout of each carrier.", "Timeout of each carrier."},
		{"Timeout", "timeout", "Timeout limits the call.", "`timeout` limits the call."},
		{"Limit", "limit", "Limit as a number", "Limit as a number"},
		{"URL", "url", "URL is the address. An URL has a scheme.", "The address. An URL has a scheme."},
		{"URL", "url", "URL to fetch", "URL to fetch"},
		{"ID", "id", "ID identifies the issue", "`id` identifies the issue"},
		{"ID", "issue_id", "ID of the issue", "ID of the issue"},
		{"PRNumber", "pr_number", "The number of the pull request (PRNumber)", "The number of the pull request (`pr_number`)"},
		{"Owner", "owner", "repository owner", "Repository owner"},
		{"Owner", "owner", "the owner, as in owner/Owner", "The owner, as in owner/Owner"},
		{"Query", "q", "GitHub search query, see https://docs.github.com", "GitHub search query, see https://docs.github.com"},
		{"Sort", "sort", "`created` or `updated`", "`created` or `updated`"},
		{"Path", "path", "main.go or another file", "main.go or another file"},
		{"Platform", "platform", "iOS or Android", "iOS or Android"},
		{"To", "to", "null is without end", "null is without end"},
		{"Addr", "addr", "read-only address", "Read-only address"},
		{"Page", "page", "Page number for pagination (min 1)", "Page number for pagination (min 1)"},
		{"Follow", "follow", "Follow symlinks.", "Follow symlinks."},
		{"Include", "include", "Include files that match", "Include files that match"},
		{"Name", "name", "Name - the name of the user", "The name of the user"},
		{"Created", "created_at", "Created was set by the server.", "`created_at` was set by the server."},
		{"A", "a", "A is the first number", "The first number"},
		{"A", "a", "A number to add", "A number to add"},
		{"Message", "message", "in nanoseconds", "In nanoseconds"},
		{"Message", "message", "é is a letter", "É is a letter"},
		{"Größe", "größe", "Größe ist wichtig, also Größe angeben", "Größe ist wichtig, also `größe` angeben"},
		{"DryRun", "dry_run", "DryRun holds", "`dry_run` holds"},
		{"Tags", "tags", "", ""},
	} {
		if got := description.Field(test.goName, test.jsonName, false, test.text, nil); got != test.want {
			t.Errorf("%s: %q became %q, want %q", test.goName, test.text, got, test.want)
		}
	}
}

func TestBooleanField(t *testing.T) {
	for _, test := range []struct{ goName, jsonName, text, want string }{
		{"Force", "force", "Force reports whether existing files are replaced.", "Whether existing files are replaced."},
		{"Force", "force", "Force indicates if existing files are replaced.", "Whether existing files are replaced."},
		{"Passed", "passed", "Passed says that every step passed.", "Whether every step passed."},
		{"Draft", "draft", "Draft controls whether the pull request is a draft", "Whether the pull request is a draft"},
		{"Force", "force", "Force skips the checks", "`force` skips the checks"},
		{"Force", "force", "Force push to the branch", "Force push to the branch"},
		{"IncludeArchived", "include_archived", "IncludeArchived includes archived projects", "`include_archived` includes archived projects"},
		{"Recursive", "recursive", "Recursive is true if subdirectories count", "True if subdirectories count"},
	} {
		if got := description.Field(test.goName, test.jsonName, true, test.text, nil); got != test.want {
			t.Errorf("%s: %q became %q, want %q", test.goName, test.text, got, test.want)
		}
	}
	const text = "Message indicates that something happened."
	if got, want := description.Field("Message", "message", false, text, nil), "`message` indicates that something happened."; got != want {
		t.Errorf("%q, want %q: a string is not whether something happened", got, want)
	}
}

func TestOtherNames(t *testing.T) {
	others := description.Names{"DryRun": "dry_run", "Name": "name", "LastPage": "DryRun"}
	got := description.Field("LastPage", "DryRun", false, "DryRun and LastPage exclude each other. Name is free.", others)
	if want := "`dry_run` and `DryRun` exclude each other. Name is free."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got = description.Tool("Start", "start", "Start starts a build. Call GetStatus then.", description.Names{"GetStatus": "ci_get_status"})
	if want := "Starts a build. Call `ci_get_status` then."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestConstants(t *testing.T) {
	constants := description.Names{"PriorityHigh": "high", "PriorityLow": "low", "Other": "other"}
	got := description.Field("Priority", "priority", false, "Priority defaults to PriorityLow. Write ci.PriorityHigh or [ci.PriorityHigh] for outages. Other is other.", constants)
	if want := "Defaults to `low`. Write `high` or `high` for outages. Other is other."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := description.Value("PriorityLow", "low", "PriorityLow goes after PriorityHigh.", constants), "Goes after `high`."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := description.Enum("How urgent it is, of PriorityLow and PriorityHigh.", constants), "How urgent it is, of `low` and `high`."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestType(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"Priority", "Priority is how urgent a build is.", "How urgent a build is."},
		{"Priority", "A Priority is how urgent a build is.", "How urgent a build is."},
		{"Step", "Step holds one step of a build.", "One step of a build."},
		{"RetryPolicy", "RetryPolicy limits the tries.", "Retry policy limits the tries."},
		{"RetryPolicy", "A RetryPolicy limits the tries.", "A retry policy limits the tries."},
		{"HTTPHeaders", "HTTPHeaders go with the request.", "HTTP headers go with the request."},
		{"URLs", "The URLs to read.", "The URLs to read."},
	} {
		if got := description.Type(test.name, test.text); got != test.want {
			t.Errorf("%s: %q became %q, want %q", test.name, test.text, got, test.want)
		}
	}
}

func TestValue(t *testing.T) {
	for _, test := range []struct{ goName, shown, text, want string }{
		{"PriorityHigh", "high", "PriorityHigh is for outages.", "For outages."},
		{"PriorityHigh", "high", "PriorityHigh goes before all others.", "Goes before all others."},
		{"StateOpen", "open", "StateOpen means that the issue is open.", "The issue is open."},
		{"NotFound", "not_found", "NotFound says that there is no such asset.", "There is no such asset."},
		{"Timeout", "timeout", "Timeout tells how long it took.", "Tells how long it took."},
		{"StateOpen", "open", "the default, unless StateOpen is not allowed", "The default, unless `open` is not allowed"},
		{"Default", "", "Default means nothing special.", "Nothing special."},
	} {
		if got := description.Value(test.goName, test.shown, test.text, nil); got != test.want {
			t.Errorf("%s: %q became %q, want %q", test.goName, test.text, got, test.want)
		}
	}
}

// TestRandomComments checks what holds for every comment: publishable text stays, in words of its readers.
func TestRandomComments(t *testing.T) {
	pieces := []string{
		"DryRun", "dry_run", "MaxResults", "is", "are", "says", "whether", "that", "skips", "the", "upload", "if", "only", "may", "holds", "means", "defaults", "`DryRun`", "[DryRun]",
		"Options.DryRun", "TODO(me): remove it", "TODO", "FIXME", "Deprecated: use", "nolint", "//nolint:lll", "#nosec G101", "-", ".", ",", ":", "\n", "\n\n", "\n\t",
		"\n\n\tcode\n\n", "\n  - item\n", "ü", "`", "(", ")", "null", "# Heading",
	}
	names := regexp.MustCompile(`(^|[^\pL\d_])DryRun($|[^\pL\d_])`)
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var drawn []string
		for range random.IntN(20) {
			drawn = append(drawn, pieces[random.IntN(len(pieces))])
		}
		body := strings.Join(drawn, " ")
		comment := "/* " + body + " */"
		if random.IntN(2) == 0 {
			comment = "// " + strings.ReplaceAll(body, "\n", "\n// ")
		}
		group := &ast.CommentGroup{}
		for line := range strings.SplitSeq(comment, "\n") {
			group.List = append(group.List, &ast.Comment{Text: line})
		}
		if strings.HasPrefix(comment, "/*") {
			group.List = []*ast.Comment{{Text: comment}}
		}
		text := description.Read(group).Text
		got := description.Field("DryRun", "dry_run", random.IntN(2) == 0, text, nil)
		if (got == "") != (text == "") {
			t.Errorf("%q became %q", text, got)
		}
		if names.MatchString(got) {
			t.Errorf("%q became %q, which has the Go name", text, got)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if strings.Contains(strings.TrimLeft(line, "\t"), "\t") && !strings.HasPrefix(line, "\t") {
				t.Errorf("%q became %q, which has a tab outside of code", text, got)
			}
		}
		if text == "" && slices.ContainsFunc(strings.Fields(body), func(word string) bool { return word == "upload" }) &&
			!strings.ContainsAny(body, "T#/:") && !strings.Contains(body, "FIXME") && !strings.Contains(body, "nolint") {
			t.Errorf("%q is lost", body)
		}
	}
}
