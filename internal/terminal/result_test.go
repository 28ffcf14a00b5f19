package terminal_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

func TestReadResult(t *testing.T) {
	structured := json.RawMessage(`{"image":"shop:1","passed":true}`)
	const indented = "{\n  \"image\": \"shop:1\",\n  \"passed\": true\n}"
	text := mcptask.TextContent
	for _, test := range []struct {
		name   string
		result *mcptask.Result
		text   string
		files  []string
	}{
		{"nothing", nil, "", nil},
		{"texts", &mcptask.Result{Content: []mcptask.Content{text("a"), text("b")}}, "a\nb", nil},
		{"structured content alone", &mcptask.Result{Structured: structured}, indented, nil},
		{"the same as text", &mcptask.Result{Content: []mcptask.Content{text(`{"passed": true, "image": "shop:1"}`)}, Structured: structured}, indented, nil},
		{"beside other text", &mcptask.Result{Content: []mcptask.Content{text("built")}, Structured: structured}, "built", nil},
		{"a link", &mcptask.Result{Content: []mcptask.Content{mcptask.LinkContent("https://example.com/log", "log")}}, "log: https://example.com/log", nil},
		{"an image", &mcptask.Result{Content: []mcptask.Content{text("see"), mcptask.ImageContent([]byte("x"), "image/png")}}, "see", []string{"image.png"}},
		{"a resource of text", &mcptask.Result{Content: []mcptask.Content{mcptask.Content(`{"type":"resource","resource":{"uri":"file:///a.txt","text":"t"}}`)}}, "t", nil},
		{"resources", &mcptask.Result{Content: []mcptask.Content{
			mcptask.Content(`{"type":"resource","resource":{"uri":"file:///a/b.tar?x=/y","mimeType":"application/x-tar","blob":"eA=="}}`),
			mcptask.Content(`{"type":"resource","resource":{"uri":"file:///..","mimeType":"application/pdf","blob":"eA=="}}`),
			mcptask.Content(`{"type":"resource","resource":{"uri":"C:\\x\\..\\e\u0000v\ni l.sh","blob":""}}`),
		}}, "", []string{"b.tar", "resource.pdf", "e_v_i_l.sh"}},
		{"an unknown block", &mcptask.Result{Content: []mcptask.Content{mcptask.Content(`{"type":"video"}`)}}, `{"type":"video"}`, nil},
		{"an image that is not base64", &mcptask.Result{Content: []mcptask.Content{mcptask.Content(`{"type":"image","data":"?"}`)}}, `{"type":"image","data":"?"}`, nil},
	} {
		got, files := terminal.ReadResult(test.result)
		var names []string
		for _, file := range files {
			names = append(names, file.Name)
		}
		if got != test.text || len(names) != len(test.files) {
			t.Errorf("%s: %q %q, want %q %q", test.name, got, names, test.text, test.files)
			continue
		}
		for i := range names {
			if names[i] != test.files[i] {
				t.Errorf("%s: %q, want %q", test.name, names, test.files)
			}
		}
	}
}

// TestReadDeepResult checks that the text of a deep result does not grow with its depth times its leaves.
func TestReadDeepResult(t *testing.T) {
	const depth = 900
	structured := strings.Repeat(`{"a":`, depth) + "[1" + strings.Repeat(",1", 50_000) + "]" + strings.Repeat("}", depth)
	for name, content := range map[string][]mcptask.Content{"alone": nil, "as text": {mcptask.TextContent(structured)}} {
		text, _ := terminal.ReadResult(&mcptask.Result{Content: content, Structured: json.RawMessage(structured)})
		if len(text) > 9*len(structured) {
			t.Errorf("%s: %d bytes become %d: %.50q", name, len(structured), len(text), text)
		}
	}
}

func TestSave(t *testing.T) {
	directory := t.TempDir()
	for _, want := range []string{"image.png", "image-2.png", "image-3.png"} {
		path, err := terminal.File{Name: "image.png", Data: []byte(want)}.Save(directory)
		if err != nil || path != filepath.Join(directory, want) {
			t.Fatalf("%s, %v, want %s", path, err, want)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != want { //nolint:gosec // in its own directory
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	if _, err := (terminal.File{Name: "a"}).Save(filepath.Join(directory, "none")); err == nil {
		t.Error("it was saved in a directory that does not exist")
	}
}
