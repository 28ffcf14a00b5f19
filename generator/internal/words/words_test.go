package words_test

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

func TestForReader(t *testing.T) {
	for _, test := range []struct{ name, doc, want string }{
		{"RunPipeline", "RunPipeline builds one branch.", "Builds one branch."},
		{"Branch", "Branch is the branch to build.", "The branch to build."},
		{"Steps", "Steps are what ran.\n\nSteps may be empty.", "What ran.\n\nSteps may be empty."},
		{"Name", "Name, if set, names it.", "Name, if set, names it."},
		{"Run", "Runner of all jobs.", "Runner of all jobs."},
		{"Run", "Run", "Run"},
		{"Timeout", "Timeout of each carrier.", "Timeout of each carrier."},
		{"Priorities", "Priorities to look for", "Priorities to look for"},
		{"Passed", "Passed tells whether it passed.", "Tells whether it passed."},
		{"Limit", "Limit as a number", "Limit as a number"},
		{"Run", "in nanoseconds", "in nanoseconds"},
		{"Run", "", ""},
	} {
		if got := words.ForReader(test.name, test.doc); got != test.want {
			t.Errorf("%s: %q became %q, want %q", test.name, test.doc, got, test.want)
		}
	}
}

func TestSnakeCase(t *testing.T) {
	for name, want := range map[string]string{
		"Run": "run", "RunPipeline": "run_pipeline", "HTTPServerURL": "http_server_url", "ID": "id", "UserID": "user_id",
		"ListURLs": "list_urls", "URLsOf": "urls_of", "IDs": "ids", "GetV2": "get_v2", "V2Config": "v2_config",
		"SHA256Sum": "sha256_sum", "Run_Now": "run_now", "DoAThing": "do_a_thing", "A": "a", "AB": "ab", "ABc": "a_bc",
		"Äpfel": "äpfel", "RunÄpfel": "run_äpfel",
	} {
		if got := words.SnakeCase(name); got != want {
			t.Errorf("SnakeCase(%s) = %s, want %s", name, got, want)
		}
	}
}
