package declaration

import "testing"

func TestNameConstraint(t *testing.T) {
	for name, want := range map[string]string{
		"a.go": "", "a_linux.go": "linux", "a_arm64.go": "arm64", "a_windows_amd64.go": "windows && amd64", "linux.go": "", "a_b.go": "",
	} {
		if got := nameConstraint(name); got != want {
			t.Errorf("nameConstraint(%s) = %q, want %q", name, got, want)
		}
	}
}

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{
		"Run": "run", "RunPipeline": "run_pipeline", "HTTPServerURL": "http_server_url", "ID": "id", "UserID": "user_id",
		"ListURLs": "list_urls", "URLsOf": "urls_of", "IDs": "ids", "GetV2": "get_v2", "V2Config": "v2_config",
		"SHA256Sum": "sha256_sum", "Run_Now": "run_now", "DoAThing": "do_a_thing", "A": "a", "AB": "ab", "ABc": "a_bc",
		"Äpfel": "äpfel", "RunÄpfel": "run_äpfel",
	} {
		if got := snakeCase(name); got != want {
			t.Errorf("snake(%s) = %s, want %s", name, got, want)
		}
	}
}
