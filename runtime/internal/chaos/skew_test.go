package chaos

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// skewVariable is how far the clock of a skewed process is ahead, in seconds.
const skewVariable = "MCPTASK_CHAOS_SKEW"

// buildSkewed builds this test binary with another package time, whose clock is ahead by the duration in skewVariable.
// So everything in the process has that clock: the server, the store's driver, the gateway. It returns the binary's
// path.
func buildSkewed(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	data, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	const begin = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	for old, replacement := range map[string]string{
		begin:                      begin + "\tsec += skew\n",
		"import (\n\t\"errors\"\n": "import (\n\t\"errors\"\n\t\"syscall\"\n",
	} {
		if strings.Count(text, old) != 1 {
			t.Fatalf("%s has changed: it does not contain %q once. Find where time.Now reads the clock, and change buildSkewed", source, old)
		}
		text = strings.Replace(text, old, replacement, 1)
	}
	text += `
var skew = func() (seconds int64) {
	text, _ := syscall.Getenv("` + skewVariable + `")
	digits, negative := text, false
	if len(text) > 0 && text[0] == '-' {
		digits, negative = text[1:], true
	}
	for _, digit := range []byte(digits) {
		seconds = 10*seconds + int64(digit-'0')
	}
	if negative {
		return -seconds
	}
	return seconds
}()
`
	changed := filepath.Join(directory, "time.go")
	overlay := filepath.Join(directory, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{changed: []byte(text), overlay: list} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(directory, "skewed.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "skewed", "-overlay", overlay, "-o", binary, ".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, output)
	}
	return binary
}
