package words_test

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

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
