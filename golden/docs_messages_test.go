package golden_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestDocsMessages finds each message that docs/troubleshooting.md lists as ours in the code, or among the errors of
// the generator. "…" in a message stands for the parts that differ.
func TestDocsMessages(t *testing.T) {
	code := readSources(t)
	page := readFile(t, "../docs/troubleshooting.md")
	_, ours, found := strings.Cut(page, "\n## What the server says\n")
	ours, _, end := strings.Cut(ours, "\n## Other symptoms\n")
	if !found || !end {
		t.Fatal("the page does not have its parts any more")
	}
	checked := 0
	for _, h := range heading.FindAllStringSubmatch(ours, -1) {
		for _, quoted := range inline.FindAllString(h[1], -1) {
			message := strings.Trim(quoted, "`")
			if message == "mcptaskgen" {
				continue // the heading of its messages
			}
			checked++
			parts := strings.Split(strings.ReplaceAll(message, "… ", "…"), "…")
			for i, part := range parts {
				parts[i] = regexp.QuoteMeta(part)
			}
			if !regexp.MustCompile(strings.Join(parts, `[^\n]*`)).MatchString(code) {
				t.Errorf("docs/troubleshooting.md: no code says %q any more", message)
			}
		}
	}
	if checked == 0 {
		t.Error("the page quotes none of our messages")
	}
}

// readSources returns the sources of messages: the code of the module, without its tests, and the errors that the tests
// expect of the generator. A message that is written over several lines is not found.
func readSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, directory := range []string{"../runtime", "../generator", "../cmd", "errors"} {
		err := filepath.WalkDir(filepath.FromSlash(directory), func(path string, _ fs.DirEntry, err error) error {
			if isCode := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"); err == nil && (isCode || filepath.Ext(path) == ".txtar") {
				all.WriteString(readFile(t, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return strings.ReplaceAll(all.String(), `\"`, `"`)
}

// knownClient matches an entry of the runtime's table of hosts.
var knownClient = regexp.MustCompile(`(?m)^\t"([^"]+)": +\{Patience: (?:(\d+) \* )?time\.(Second|Minute)\b`)

// knownRow matches a host's row with a time in docs/connect-clients.md: the names that its program gives
// itself, and the time.
var knownRow = regexp.MustCompile(`(?m)^\| [^|]+ \| ([^|]+) \|.*\| (\d+) \|$`)

// TestDocsHosts compares the hosts that the runtime knows, and how long it takes them to wait, with
// docs/connect-clients.md.
func TestDocsHosts(t *testing.T) {
	page := readFile(t, "../docs/connect-clients.md")
	known := knownClient.FindAllStringSubmatch(readFile(t, "../runtime/taskserver/client_profile.go"), -1)
	if len(known) == 0 {
		t.Fatal("the runtime's table of hosts is not read any more")
	}
	for _, entry := range known {
		seconds := 1
		if entry[2] != "" {
			seconds, _ = strconv.Atoi(entry[2]) // its digits
		}
		if entry[3] == "Minute" {
			seconds *= 60
		}
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\|[^\n]*`%s`[^\n]*\\| %d \\|$", regexp.QuoteMeta(entry[1]), seconds))
		if !row.MatchString(page) {
			t.Errorf("docs/connect-clients.md has no row for %q, which the server takes to wait %d seconds", entry[1], seconds)
		}
	}
	for _, row := range knownRow.FindAllStringSubmatch(page, -1) {
		for _, name := range inline.FindAllString(row[1], -1) {
			client := taskserver.ClientInfo{Name: strings.TrimSuffix(strings.Trim(name, "`"), "*")}
			if patience := taskserver.KnownClient(client).Patience; row[2] != fmt.Sprint(patience.Seconds()) {
				t.Errorf("docs/connect-clients.md has %s seconds for %s, which the server takes to wait %v", row[2], name, patience)
			}
		}
	}
}
