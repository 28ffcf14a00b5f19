package mcptask

import (
	"encoding/json"
	"testing"
)

// Content blocks are what the protocol calls them, and go there and back.
func TestContent(t *testing.T) {
	for want, c := range map[string]Content{
		`{"text":"a < b","type":"text"}`:                          TextContent("a < b"),
		`{"data":"AQI=","mimeType":"image/png","type":"image"}`:   ImageContent([]byte{1, 2}, "image/png"),
		`{"data":"AQI=","mimeType":"audio/wav","type":"audio"}`:   AudioContent([]byte{1, 2}, "audio/wav"),
		`{"name":"log","type":"resource_link","uri":"file:///l"}`: LinkContent("file:///l", "log"),
	} {
		data, err := marshalJSON(Result{Content: []Content{c}})
		if err != nil {
			t.Fatal(err)
		}
		var back, expected struct{ Content []map[string]any }
		if json.Unmarshal(data, &back) != nil || json.Unmarshal([]byte(`{"content":[`+want+`]}`), &expected) != nil {
			t.Fatalf("%s", data)
		}
		for key, value := range expected.Content[0] {
			if back.Content[0][key] != value {
				t.Errorf("%s, want %s", data, want)
			}
		}
	}
	if _, err := json.Marshal(Result{Content: []Content{nil}}); err == nil {
		t.Error("an empty block was encoded")
	}
}
